"""Figures on the pages, from what the benchmarks wrote to `results/`: one function a table or sentence.

A page says where a figure belongs, and ``make figures`` fills it in:

    <!-- [[[cog cog.outl(figures.budget_table()) ]]] -->
    <!-- [[[end]]] -->

To add one: let the benchmark write its numbers (`drawn.keep("name", numbers)`), write a function here that turns
``results("name")`` into Markdown, name it on a page between two such lines, and run ``make figures``. A test fails when
a page differs from its numbers.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
SCENARIOS = ("Balance1", "Balance2", "Balance3", "Imbalance1", "Imbalance2", "Imbalance3")


def results(name: str) -> Any:
    """What a benchmark wrote."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines).replace("|  |", "| |")


def arrow(before: float, after: float) -> str:
    """A change, as the pages write it."""
    return f"{before:g} → {after:g}"


# benchmarks/any_size.py --------------------------------------------------------------------------------------


def any_size_table() -> str:
    """Delays after changes of ten sizes, and over the limit; and those of river's detectors."""
    found, river = results("any_size"), results("any_size_river")["rows"]
    late, early = found["50000"]["rows"], found["5000"]["rows"]
    return table(
        ["tnr", "limit, events", "`FourRates`", "over the limit", "after 5,000 stable events", *river],
        (
            [
                *(arrow(*change), f"{limit:,.0f}", f"{old[0]:,.0f}", f"{old[1]:.2f}", f"{new[1]:.2f}"),
                *("not found" if one is None else f"{one:.1f}" for one in others),
            ]
            for change, limit, old, new, *others in zip(
                found["changes"], found["limit"], late, early, *river.values(), strict=True
            )
        ),
    )


def readme_comparison() -> str:
    """One change, found by FourRates and by ADWIN at the same number of false alarms."""
    found, adwin = results("any_size"), results("any_size_river")["rows"]["river ADWIN"]
    at = found["changes"].index([0.9, 0.87])
    ours, theirs = (_rounded(delay) for delay in (found["5000"]["rows"][at][0], adwin[at] * found["limit"][at]))
    return (
        "A recall falls from 0.9 to 0.87, at one false alarm in 100,000 events. `FourRates`, with a history of 5,000,\n"
        f"finds it after {ours:,} events; river's ADWIN on the errors, with a history of 10,000, after {theirs:,}.\n"
        f"Of ten changes of different sizes ADWIN misses {sum(one is None for one in adwin)}, `FourRates` none."
    )


def any_size_means() -> str:
    """The geometric means, and how many of the streams with a short history find a small change."""
    found = results("any_size")
    change = found["changes"].index([0.9, 0.87])
    return (
        f"Geometric mean: {found['50000']['mean']:.2f} after 50,000 events, {found['5000']['mean']:.2f} after 5,000; "
        f"there 0.9 → 0.87\nis found within 20,000 events in {found['5000']['rows'][change][2]:.0%} of streams."
    ).replace("%", " %")


def short_history() -> str:
    """What can be found at most where the old rate is known from few observations."""
    found = results("short_history")
    one, four = (f"{100 * found[name]:.0f} %" for name in ("one", "four"))
    return (
        "Told which class to watch and that its recall falls, a likelihood ratio of two samples that spends the whole "
        f"budget\non it finds {one}; with four such questions to ask, as here, {four} "
        f"(`python benchmarks/short_history.py`, {found['streams']:,} streams)."
    )


def any_size_others() -> str:
    """Gradual changes, and those drawn by a seed."""
    found = results("any_size")
    gradual = (
        f"A gradual change, 0.9 → 0.8 over 1,000 events, is found after {found['gradual 1000']:,.0f}, over 10,000 "
        f"events after {found['gradual 10000']:,.0f}."
    )
    if found["drawn"] is None:
        return gradual
    return (
        f"{gradual}\n{len(found['drawn']['ratios'])} changes drawn by a seed (rates from 0.5 to 0.995, steps of 0.1 to "
        "2.5 in log-odds of one recall or both,\n10 to 90 % positives) have a geometric mean of "
        f"{found['drawn']['mean']:.2f}: nothing was chosen on them."
    )


# benchmarks/small_samples.py ---------------------------------------------------------------------------------


def small_samples_table() -> str:
    """What each of the two finds at the same number of false alarms, for each of the three samples."""
    found = results("small_samples")
    named = {
        "USENET1": "USENET1, of 400 within 20 events",
        "USENET2": "USENET2, of 400 within 50 events",
        "few positives": "1 % positives, of 100 {what}",
    }
    rows = [
        [
            text.format(what=row["what"]),
            f"{row['false']:.0f}",
            f"{row['own']:.0f}",
            f"{row['exact']:.0f}",
            f"{row['own'] / row['exact']:.2f}",
            f"{row['error']:.0f}",
        ]
        for name, text in named.items()
        for row in (found[name] if name == "few positives" else found[name][:1])
    ]
    head = ("", "false alarms", "`FourRates`", "LFR", "ratio", "standard error")
    return table(head, rows)


# benchmarks/six.py -------------------------------------------------------------------------------------------


def six_table() -> str:
    """Hits, false alarms and delays on the paper's six scenarios, and the limit."""
    found = results("six")
    rows = [
        [f"`{name}`", *(f"{hits:.1f} / {false:.1f} / {delay:,.0f}" for hits, false, delay in cells)]
        for name, cells in found["hits"].items()
    ]
    return table(["", *SCENARIOS], [*rows, ["the limit, median delay", *(f"{one:,.0f}" for one in found["limit"])]])


def coverage_sentences() -> str:
    """How often intervals hold the truth."""
    found = results("six")["coverage"]
    worst = min(one["started_between"] for one in found.values())
    shares = {key: sorted(one[key] for one in found.values()) for key in ("started_between", "before", "after")}
    parts = ", ".join(
        f"`{key}` in {_percent(own[0])} to {_percent(own[-1])} (median {_percent(statistics.median(own))})"
        for key, own in shares.items()
    )
    least = next(name for name, one in found.items() if one["started_between"] == worst)
    return (
        f"Over {len(found)} kinds of change, 400 alarms each (standard error 1.5 points), the 90 % interval\n"
        f"holds the truth for {parts}.\nThe start is dated worst for {least.replace('->', '→')}."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


# benchmarks/budget.py ----------------------------------------------------------------------------------------


def budget_table() -> str:
    """Run lengths measured over the budget."""
    cells: dict[float, list[float]] = {}
    for one in results("budget"):
        cells.setdefault(one["arl"], []).append(one["ratio"])
    return table(
        ["budget: one in", "streams", "lowest ratio", "median", "highest"],
        (
            [
                f"{arl:,.0f}",
                f"{len(ratios)}",
                f"{min(ratios):.2f}",
                f"{statistics.median(ratios):.2f}",
                f"{max(ratios):.2f}",
            ]
            for arl, ratios in sorted(cells.items())
        ),
    )


def budget_extremes() -> str:
    """How many cells lie outside, and whether some phase after a restart has too many alarms."""
    found = results("budget")
    ratios = [one["ratio"] for one in found]
    # As in the benchmark: beyond two deviations of a Poisson count.
    late = sum(n > 0 and ratio * (1 - 2 / math.sqrt(n)) > 1.5 for one in found for ratio, n in one["phases"].values())
    return (
        f"{sum(ratio < 1 for ratio in ratios)} of {len(ratios)} cells lie below 1. "
        f"{sum(ratio > 2 for ratio in ratios)} lie above 2; in these a class errs about once in a budget.\n"
        f"Phases soon after a restart with more than 1.5 times their share of alarms: {late}."
    )


# benchmarks/real_streams.py ----------------------------------------------------------------------------------


def real_streams_table() -> str:
    """Alarms over those asked for, on streams that are not independent."""
    found = results("real_streams")["streams"]
    cells = {(one["stream"], one["arl"]): f"{one['ratio']:.2f}" + _in_brackets(one["plain"]) for one in found}
    lengths = sorted({one["arl"] for one in found})
    return table(
        ["stream", *(f"one in {arl:,.0f}" for arl in lengths)],
        ([name, *(cells[name, arl] for arl in lengths)] for name in dict.fromkeys(one["stream"] for one in found)),
    )


def real_streams_alarm() -> str:
    """Drifts and shifts together over the budget, if a shift is an alarm."""
    rows = results("real_streams_alarm")["streams"]
    both = {row["stream"]: row["ratio"] + row["shifts"] for row in rows}
    return (
        f'On the streams below `mix="alarm"` raises {both["independent"]:.1f} times the budget\'s alarms if events are '
        f"independent,\nand up to {max(both.values()):.0f} times ({max(both, key=lambda name: both[name])})."
    )


def _in_brackets(ratio: float | None) -> str:
    return "" if ratio is None else f" ({ratio:.2f})"


def elecnorm_table() -> str:
    """Alarms of three models on elecNorm."""
    return table(
        ["model", "as recorded", "shuffled within months", "over those", "independence taken for granted"],
        (
            [
                one["model"],
                str(one["recorded"]),
                str(one["shuffled"]),
                f"{one['recorded'] / one['shuffled']:.2f}",
                str(one["independence taken for granted"]),
            ]
            for one in results("real_streams")["elecNorm"]
        ),
    )


def injected_sentence() -> str:
    """How often an injected change is found on elecNorm within three months."""
    found = results("real_streams")["elecNorm"]
    falls = [one["injected"]["fall of tnr"] for one in found]
    shares = [one["injected"]["found by month"][-1] for one in found]
    return (
        f"With labels of one class flipped so that tnr falls by {100 * min(falls):.0f} to "
        f"{100 * max(falls):.0f} points, at most {_percent(max(shares))} of the draws\nare found within three months."
    )


# benchmarks/peers/streams.py ---------------------------------------------------------------------------------


def peers_streams_table() -> str:
    """Alarms of river's detectors per 100,000 events of streams that do not change."""
    found = results("peers_streams")
    rows = [row for row in found["rows"] if row["detector"].startswith(("FourRates", "river"))]
    shown = ("independent", "errors repeat, 0.3", "errors repeat, 0.6", "error rate +-50 %, period 1,440")
    return table(
        ["stream", *(row["detector"] for row in rows)],
        (
            [name, *(f"{row['alarms'][name]:.{0 if row['alarms'][name] >= 100 else 1}f}" for row in rows)]
            for name in (*shown, "every event twice")
        ),
    )


# benchmarks/dispersion_cost.py -------------------------------------------------------------------------------


def dispersion_cost() -> str:
    """What the estimate of dispersion costs on independent streams."""
    ratios = [one["ratio"] for one in results("dispersion_cost")["independent"]]
    return (
        f"On independent streams the estimate costs at most {_percent(max(ratios) - 1)} in median delay "
        "(`python benchmarks/dispersion_cost.py`)."
    )


# benchmarks/reference.py and hold.py -------------------------------------------------------------------------


def reference_sentences() -> str:
    """Bad from the first event, and as good as the reference."""
    found = results("reference")
    bad, good = found["bad"], found["good"]
    kept = " and ".join(f"{one['ratio']:.2f} ± {one['standard error']:.2f}" for one in good)
    positives = " and ".join(f"{one['positives']:,}" for one in good)
    return (
        "A tpr of 0.5 from the first event on, against a reference of 0.8 from 1,000 positives, is found in "
        f"{bad['named']:.1%} of {found['streams']:,} streams,\nafter {bad['median']:,.0f} events in the median. "
        f"A model as good as its reference raises {kept} of the budget's alarms\n"
        f"with {positives} positives in the reference."
    ).replace("%", " %")


def weeks_table() -> str:
    """Alarms and delays in a weekly season."""
    head = ["errors at weekends", "events a week", "alarms over those asked for", "events to find the fall"]
    return table(
        [*head, "over a CUSUM that knows all"],
        (
            [
                f"times {row['factor']:g}",
                f"{row['a_week']:,}",
                f"{row['ratio']:.2f}",
                f"{row['delay']:,.0f}",
                f"{row['over']:.2f}",
            ]
            for row in results("first_weeks")["weeks"]
        ),
    )


def tolerance_table() -> str:
    """Alarms within a tolerance and delays beyond it."""
    found = results("first_weeks")["tolerance"]
    rows = [[row["stream"], f"{row['without']:.1f}", f"{row['ratio']:.2f}"] for row in found["within"]]
    delays = [row["delay"] / row["limit"] for row in found["beyond"]]
    mean = math.exp(statistics.fmean(map(math.log, delays)))
    return table(("a stream that stays within 3 points", "alarms over those asked for", "with the tolerance"), rows) + (
        f"\n\nChanges beyond it take {mean:.2f} times as long as a CUSUM needs that knows the change and "
        "starts from the edge (`python benchmarks/first_weeks.py`)."
    )


def hold_sentence() -> str:
    """Falls, further falls and recoveries, each reported once."""
    courses, streams = results("hold")["courses"], results("hold")["streams"]
    parts = []
    for arl in sorted({one["arl"] for one in courses}):
        right = [one["right"] for one in courses if one["arl"] == arl]
        parts.append(f"{_percent(min(right))} to {_percent(max(right))} at one false alarm in {arl:,} events")
    return (
        f"In {len(courses) // len(parts)} courses of falls, further falls and recoveries ({streams} streams each) "
        f"every step is reported once,\nas what it is, in {', and in '.join(parts)} (`python benchmarks/hold.py`)."
    )


# The life of a drift ------------------------------------------------------------------------------------------


def life_table() -> str:
    """What becomes of a rate, from the code itself."""
    from fourrates.evidence.life import LIFE

    rows: dict[tuple[str, str, str], list[str]] = {}
    for (condition, happening), step in LIFE.items():
        rows.setdefault((happening, step.condition, step.finding or "nothing"), []).append(condition)
    return table(
        ["a rate that is", "what happens", "is then", "and is reported as"],
        ([", ".join(before), happening, after, kind] for (happening, after, kind), before in rows.items()),
    )


def stable_look_sentence() -> str:
    """How many false alarms are withdrawn, and how long they stay open."""
    found = results("second_look")["stable"]
    alarms = sum(one["alarms"] for one in found)
    withdrawn = sum(one["withdrawn"] * one["alarms"] for one in found) / alarms
    few, many = ([one["open"] for one in found if one["positives"] == share] for share in (0.015, 0.5))
    return (
        f"Of {alarms:,} false alarms on stable streams {_percent(withdrawn)} are withdrawn. "
        "A stable stream has an open drift\n"
        f"{_percent(min(many))} to {_percent(max(many))} of the time if half of its events are positive, "
        f"{_percent(min(few))} to {_percent(max(few))} with 1.5 % positives."
    )


def lasting_sentences() -> str:
    """True changes that are withdrawn, and how soon they are confirmed."""
    found = [one for one in results("second_look")["lasting"] if one["arl"] == 100_000]
    listed, drawn = ([one for one in found if ("drawn" in one["change"]) == which] for which in (False, True))
    clear = [one for one in found if one["kind"] == "clear"]
    worst = max(one["withdrawn"] for one in clear)
    waits = sorted(one["confirmation"] / one["alarm"] for one in clear)
    mean = sum(one["withdrawn"] for one in clear) / len(clear)
    return (
        f"Of {len(listed)} chosen and {len(drawn)} drawn changes, {len(clear)} are clearly above the smallest step\n"
        f"that is looked for. While they last they are withdrawn in {mean:.1%} of the streams, {worst:.0%} at worst,\n"
        f"and most of these are found again. A confirmation takes {waits[len(waits) // 2]:.2f} times the events that\n"
        "the alarm took, in the median over the changes."
    ).replace("%", " %")


def returning_table() -> str:
    """Full and partial recoveries, and as what they are told."""
    sizes = (20_000, 4_000, 1_000)
    by_course: dict[str, dict[int, Any]] = {}
    for one in results("second_look")["returning"]:
        by_course.setdefault(one["course"], {})[one["normal"]] = one
    return table(
        ["tpr", *(f"normal of {size // 2:,} positives" for size in sizes)],
        ([course, *(f"{own[size]['recovery']:.0%}" for size in sizes)] for course, own in by_course.items()),
    )


def now_sentence() -> str:
    """Whether the intervals of now hold."""
    found = results("second_look")["now"]
    own = [one["coverage"] for one in found if not (one["where"].startswith("at a") and "," in one["where"])]
    return f"The 90 % interval of `now` holds the true rate in {_percent(min(own))} to {_percent(max(own))} of cases."


def correlated_look_sentence() -> str:
    """How many false alarms are withdrawn on streams whose errors are correlated."""
    parts = [
        f"{_percent(one['withdrawn'])} ({one['stream']})"
        for one in results("second_look")["correlated"]
        if one["stream"] != "independent"
    ]
    return f"Correlated errors look like a change for longer, so fewer are withdrawn: {' and '.join(parts)}."


def any_size_reference_sentence() -> str:
    """Small lasting changes against a reference."""
    found = results("any_size_reference")
    return (
        f"Against a reference of {found['reference']:,} events the same changes take {found['1000']['mean']:.2f} times "
        f"the limit\nafter 1,000 events of history (geometric mean)."
    )


# Choose a budget ---------------------------------------------------------------------------------------------


def budget_delays_table() -> str:
    """Delays of falls for three budgets, from `benchmarks/choose_budget.py`."""
    found = results("choose_budget")
    head = ["fall", *(f"one false alarm a {one['patience']}, {one['arl']:,.0f} events" for one in found["budgets"])]
    first = found["budgets"][0]["falls"]
    rows = []
    for i, fall in enumerate(first):
        cells = []
        for budget in found["budgets"]:
            one = budget["falls"][i]
            cells.append("more" if one["median"] is None else f"{_rounded(one['median']):,} events, {one['time']}")
        rows.append([f"{fall['rate']} {arrow(round(fall['from'], 3), round(fall['to'], 3))}", *cells])
    return table(head, rows)


def _rounded(number: float) -> int:
    """To two digits, which is all that a standard error of a tenth allows."""
    return int(float(f"{number:.2g}"))


# benchmarks/spark_batch.py, spark_streaming.py, kafka_kill.py, kafka_speed.py, serve_kafka.py ------------------


def bank_speed_table() -> str:
    """Events a second and bytes a stream of banks of a million."""
    found = results("bank_speed")
    rows = [
        [one["bank"], f"{one['wall']:.1f}", f"{one['speed']:.1f}", f"{one['bytes']:,.0f}"] for one in found["banks"]
    ]
    speed = f"million events a second, with {found['threads']} threads"
    return table(["", speed, "of processor time", "bytes a stream"], rows)


def spark_batch_sentences() -> str:
    """A batch next to a job that only counts, and how it grows with the number of keys."""
    found = results("spark_batch")
    ends = sorted(detect / only for only, detect in found["pairs"])
    text = (
        f"`python benchmarks/spark_batch.py`: {found['events']:,} events of {found['keys']:,} keys take "
        f"{found['ratio']:.2f} times as long as the same\njob with a function that only counts events (median of "
        f"{len(ends)} pairs, {ends[0]:.2f} to {ends[-1]:.2f}), with {_exchanges(found['exchanges'])} in the plan."
    )
    if "same" in found:
        as_bank = "to the last digit those of one bank" if found["same"] else "NOT those of one bank"
        text += f"\n{found['drifts']:,} changed rates, in these events and in 2,000,000 of 10,000 keys, are {as_bank}."
    if "growth" in found:
        keys = ", ".join(f"{int(count):,}" for count in found["growth"])
        counts, costs = (
            ", ".join(f"{cost:,.0f}" for cost in each) for each in zip(*found["growth"].values(), strict=True)
        )
        text += f"\nAn event costs {costs} ns with {keys} keys,\nof which counting takes {counts} ns."
    return text


def _exchanges(count: int) -> str:
    return "one exchange" if count == 1 else f"{count} exchanges"


def spark_streaming_sentence() -> str:
    """Micro-batches next to those of a job that only counts."""
    found = results("spark_streaming")
    ends = sorted(ours / min(usual, same) for usual, same, ours in found["times"])
    usual = statistics.median(ours / usual for usual, _, ours in found["times"])
    same = statistics.median(ours / same for _, same, ours in found["times"])
    return (
        f"`python benchmarks/spark_streaming.py`: {found['keys']:,} keys, micro-batches of {found['batch']:,} events: "
        f"{found['ratio']:.2f} times as long as\nthe same stateful job that only counts, in the quicker of two ways "
        f"(median of {len(ends)} turns, {ends[0]:.2f} to {ends[-1]:.2f}):\n{usual:.2f} times a count with "
        f"`applyInPandasWithState`, {same:.2f} times one whose events are packed and whose state is kept as ours."
    )


def spark_kill_sentence() -> str:
    """What became of a streaming query that was killed; nothing where that was not run."""
    if not (RESULTS / "spark_kill.json").exists():
        return ""
    found = results("spark_kill")
    kinds = ", ".join(f"{count} {kind}" for kind, count in found["kills"].items())
    right = "none lost, none repeated, and the state to the last digit that of a run without kills"
    return (
        f"`python benchmarks/spark_kill.py`: {sum(found['kills'].values())} kills ({kinds}), "
        f"{found['drifts']} changed rates:\n{'; '.join(found['wrong']) or right}."
    )


def kafka_sentences() -> str:
    """What became of killed members and brokers, and how fast a topic is watched."""
    kill, speed = results("kafka_kill"), results("kafka_speed")
    rows = []
    for one in speed:
        row = [one["messages"], str(one["members"]), f"{statistics.median(one['own']):,.0f}"]
        for peer in ("bare", "ahead"):
            shares = [own / other for own, other in zip(one["own"], one[peer], strict=True)]
            row += [
                f"{statistics.median(one[peer]):,.0f}",
                f"**{statistics.median(shares):.2f}** ({min(shares):.2f} to {max(shares):.2f})",
            ]
        rows.append(row)
    head = ["messages", "members", "events a second", "bare loops", "share", "fetching ahead as we do", "share"]
    return (
        f"`python benchmarks/kafka_kill.py`, on a real broker: {kill['kills']} kills of members, {kill['ended']} asked "
        f"to end, {kill['zombies']} stopped until\nothers had their partitions, {kill['broker_kills']} kills of the "
        f"broker. {kill['events']:,} events of {kill['keys']:,} keys: none lost, none counted twice,\n"
        f"the saved states byte for byte those of banks that nothing happened to, and each of {kill['drifts']:,} "
        "drifts produced\n"
        f"({kill['produced'] / max(kill['drifts'], 1):.2f} messages a drift), each under one id.\n\n"
        "`python benchmarks/kafka_speed.py`, 100,000 keys, next to as many bare loops that only consume and decode:"
        "\n\n" + table(head, rows)
    )


def serve_kafka_sentence() -> str:
    """What became of a service that takes a topic, killed again and again."""
    found = results("serve_kafka")
    outcome = "; ".join(found["wrong"]) or "each counted exactly once"
    return (
        f"`python benchmarks/serve_kafka.py`, on a real broker: {found['kill'] + found['committed']} kills of the "
        f"server, {found['committed']} of them right after a commit, and {found['broker']}\nof the broker; "
        f"{found['events']:,} events, {outcome}."
    )


# benchmarks/kill.py -------------------------------------------------------------------------------------------


def kill_sentence() -> str:
    """What became of processes that were killed at random moments."""
    found = results("kill").values()
    lost = sum(len(one["wrong"]) for one in found)
    return (
        f"`make kill` ended them {sum(one['kills'] for one in found):,} times with kill -9 at random moments, with "
        f"{sum(one['events'] for one in found):,} events and {sum(one['alerts'] for one in found):,} alarms.\n"
        f"Events or alarms lost or counted twice, and files that could not be read: {lost}."
    )


# benchmarks/fuzz_states.py, fuzz_files.py ---------------------------------------------------------------------


def fuzz_sentence() -> str:
    """What became of bytes that were changed at random."""
    found = {**results("fuzz_states"), **results("fuzz_files")}.values()
    tried = sum(one.get("refused", 0) + one.get("went wrong", 0) + one.get("ran", one.get("read", 0)) for one in found)
    wrong = sum(one.get("went wrong", 0) for one in found)
    return (
        f"`make fuzz` changed {tried:,} states and files at random. Crashes, hangs or states that broke later: {wrong}."
    )


# benchmarks/loop.py ------------------------------------------------------------------------------------------


LOOP_MEASURES = ("accuracy", "f1", "g_mean")
LOOP_PEERS = ("never", "periodic", "ADWIN")
LOOP_VERSION = 3  # as in benchmarks/loop.py: what is of an earlier loop is marked


def _loop_rows() -> list[dict[str, Any]]:
    """A row a stream and model: each measure of the loop that was told to serve it, and of its peers in that run."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for one in results("loop")["streams"]:
        found.setdefault((one["stream"], one["model"]), {})[one["measure"]] = one
    rows = []
    for runs in found.values():
        if len(runs) == len(LOOP_MEASURES):
            own = [(runs[name], at) for at, name in enumerate(LOOP_MEASURES)]
            rows.append(
                runs["accuracy"]
                | {
                    "version": min(_loop_version(one) for one, _ in own),
                    "scores": {who: [one["scores"][who][at] for one, at in own] for who in (*LOOP_PEERS, "champion")},
                    "ahead": [one["ahead"][at] for one, at in own],
                    "errors": [one["errors"][at] for one, at in own],
                    "fits": [one["refits"]["champion"] for one, _ in own],
                }
            )
    return rows


def _loop_version(one: dict[str, Any]) -> int:
    return int(one.get("version", 1))


def loop_table() -> str:
    """How far the vote is ahead of the best of its peers, on streams nothing was chosen on: the median over them."""
    shown = [one for one in _loop_rows() if not one["tuned"] and _loop_version(one) == LOOP_VERSION]
    rows = []
    for model in dict.fromkeys(one["model"] for one in shown):
        own = [one for one in shown if one["model"] == model]
        medians = [statistics.median(one["ahead"][at] for one in own) for at in range(len(LOOP_MEASURES))]
        rows.append([model, str(len(own)), *(f"{median:+.1f}" for median in medians)])
    return table(["model", "streams", "accuracy", "F1", "G-mean"], rows)


def loop_summary() -> str:
    """How many of the figures are short, and by how much."""
    shown = [one for one in _loop_rows() if not one["tuned"] and _loop_version(one) == LOOP_VERSION]
    pairs = [pair for one in shown for pair in zip(one["ahead"], one["errors"], strict=True)]
    ahead = sorted(by for by, _ in pairs)
    near, above = sum(by >= -0.5 for by in ahead), sum(by > 0 for by in ahead)
    short = sum(by < -max(0.5, 2 * error) for by, error in pairs)
    return (
        f"Of {len(ahead)} figures on streams no constant was chosen on, the vote is above the best of the others "
        f"in {above},\nand at most half a point below it in {near - above} more. "
        f"The median is {ahead[len(ahead) // 2]:+.1f} points. "
        f"It falls short by more\nthan two standard errors in {short}."
    )


def loop_public_table() -> str:
    """The share of right predictions on the paper's data sets."""
    return table(
        ["data set", "runs", "never", "paper's loop, LFR", "vote"],
        (
            [
                one["dataset"] + ("" if _loop_version(one) == LOOP_VERSION else " (earlier loop)"),
                str(one["runs"]),
                *(f"{one[who]:.3f}" for who in ("never", "LFR", "champion")),
            ]
            for one in results("loop")["public"]
        ),
    )


def second_layer_table() -> str:
    """Hits, false alarms and delays of LFR without and with a second layer."""
    return table(
        [
            "data set",
            "runs",
            "detector",
            "hits",
            "false alarms",
            "precision",
            "recall",
            "delay of hits",
            "waited, each alarm",
        ],
        (
            [
                one["dataset"],
                str(one["runs"]),
                one["detector"],
                f"{one['hits']} of {one['changes']}",
                str(one["false_alarms"]),
                f"{one['precision']:.2f}",
                f"{one['recall']:.2f}",
                f"{one['delay']:,.0f}",
                f"{one['second_layer_delay']:,.0f}" if one["detector"] != "LFR" else "-",
            ]
            for one in results("loop")["hlfr"]
            if one["runs"] >= 100
        ),
    )


# benchmarks/paper_tables.py and payments.py --------------------------------------------------------------------


def paper_tables() -> str:
    """Hits and false alarms of the paper's four methods, ours and the printed ones."""
    found = results("paper_tables")
    return table(
        ["", *found["ours"]],
        (
            [scenario]
            + [
                f"{ours[at][0]:.0f} / {ours[at][1]:.0f} ({printed[0]} / {printed[1]})"
                for ours, printed in ((own, found["paper"][name][at]) for name, own in found["ours"].items())
            ]
            for at, scenario in enumerate(SCENARIOS)
        ),
    )


def payments_table() -> str:
    """Alarms on the stream of the demo, in which two things change."""
    found = results("payments")
    names: dict[int, list[str]] = {}
    for name, count in found.items():
        names.setdefault(count, []).append(f"`{name}`" if not name.startswith("river") else name)
    return table(["alarms", "detectors"], ([f"{count}", ", ".join(names[count])] for count in sorted(names)))


# benchmarks/distribution.py ----------------------------------------------------------------------------------


def power_table() -> str:
    """Power of tests on features and labels, and of detectors on the rates, at the same false alarms."""
    found = results("dimensions")
    rows = [
        [change, *(f"{power:.2f}" for power in powers)]
        for change, *powers in found["power"]
        if change.endswith((" 2", " 50", " 500")) and change.startswith(("rule turned by 45", "feature"))
    ]
    return table(["power", *found["methods"]], rows)


# benchmarks/serve_load.py, serve_kill.py, serve_fuzz.py ------------------------------------------------------


def serve_load_table() -> str:
    """How fast the service takes events, against a bare endpoint."""

    def speed(rate: float, p99: float) -> str:
        return f"{rate:,.0f}, {p99:.0f} ms"

    found = {
        name: one
        for part in ("columns", "ids", "single")
        for name, one in results(f"serve_load_{part}").items()
        if " 8 " not in name
    }
    return table(
        ["requests a second, 99th percentile", "service", "bare endpoint", "ratio"],
        (
            [
                name,
                speed(one["ours"], one["p99 ms"]),
                speed(one["bare"], one["bare p99 ms"]),
                f"{one['ratio']:.2f}",
            ]
            for name, one in found.items()
        ),
    )


def serve_load_sentences() -> str:
    """What else was measured of a service under load."""
    parts = ("arrow", "late", "memory")
    arrow, late, memory = (next(iter(results(f"serve_load_{one}").values())) for one in parts)
    lines = [
        f"Arrow in batches of 10,000: {arrow['events a second'] / 1e6:.1f} million events a second.",
        f"Ten million predictions that wait take {late['bytes each']:.0f} bytes each; after a kill they are loaded",
        f"  in {late['start-up s']:.0f} s.",
        f"100 monitors with 10,000 segments each take {memory['bytes'] / 1e9:.1f} GB.",
    ]
    return "\n".join(line if line.startswith(" ") else f"- {line}" for line in lines)


def serve_kill_table() -> str:
    """What was killed, and what was lost."""
    columns = ("requests", "events", "findings", "drifts told", "deliveries")
    rows = []
    for title in ("SQLite", "PostgreSQL"):
        one = results(f"serve_kill_{title.lower()}")
        database = f", the database {one['databases killed']}" if one["databases killed"] else ""
        rows.append([title, f"{one['kills']}{database}", *(f"{one[name]:,}" for name in columns), "0", "0"])
    return table(
        ["store", "kills", "requests", "events", "findings", "drifts told", "deliveries", "lost", "counted twice"], rows
    )


def serve_fuzz_sentence() -> str:
    """Requests that nobody should send."""
    one = results("serve_fuzz")
    return (
        f"`python benchmarks/serve_fuzz.py`: {one['requests']:,} fuzzed requests, none answered with 500, and none\n"
        f"left without an answer; {one['sound_events']:,} sound events sent meanwhile were counted exactly."
    )


def serve_attack_lines() -> str:
    """What was done to the service, and what became of it."""
    bombs, soak = results("serve_bombs"), results("serve_attack_soak")
    clock, cuts, backup = (results(f"serve_attack_{name}") for name in ("clock", "cuts", "backup_sqlite"))
    above, allowed = (bombs[name] - bombs["resting_mb"] for name in ("peak_mb", "allowed_mb"))
    memory = [megabytes for events, megabytes in soak["memory_mb"] if events >= soak["events"] / 10]
    lines = [
        f"{bombs['requests']:,} small hostile bodies: {above:,} MB above rest at most, of {allowed:,} allowed;",
        f"  honest requests beside them were answered within {bombs['honest_slowest_seconds']:.1f} s.",
        f"{clock['jumps']} leaps of the clock: all {clock['waited']:,} predictions still waited.",
        f"{cuts['cuts']} cut connections to PostgreSQL: {cuts['events']:,} events acknowledged, and exactly",
        "  these counted.",
        f"{backup['kills']} killed backups: every file was whole or absent.",
        f"{soak['events'] / 1e6:,.0f} million events: {memory[0]} MB after a tenth, {memory[-1]} MB at the end.",
    ]
    return "\n".join(line if line.startswith(" ") else f"- {line}" for line in lines)
