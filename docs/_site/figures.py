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


def medians(streams: int, command: str) -> str:
    """How many streams a median is of, and its error; the median of 100 delays has one of about 12 %."""
    error = f"standard error about {120 / streams**0.5:.0f} %"
    return f"medians of {streams} streams, {error} (`python benchmarks/{command}`)"


# benchmarks/any_size.py --------------------------------------------------------------------------------------


def any_size_medians() -> str:
    """Of what the delays are medians."""
    return f"Delays are {medians(results('any_size')['streams'], 'any_size.py')}."


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
        f"finds it after {ours:,} events; river's ADWIN, which watches the errors, needs {theirs:,} with a history\n"
        "of 10,000. "
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
        "A likelihood ratio test that knows the class and the direction, and spends the whole budget on them,\n"
        f"finds {one}; with four such questions, as here, {four} "
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
        f"{gradual}\nNo constant was chosen on {len(found['drawn']['ratios'])} changes drawn at random (rates from 0.5 "
        "to 0.995, steps of 0.1 to 2.5\nin log-odds of one recall or both, 10 to 90 % positives). Their geometric mean "
        f"is {found['drawn']['mean']:.2f}."
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
        f"{len(found)} kinds of change, 400 alarms each (standard error 1.5 points). The 90 % interval\n"
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
    """Alarms over the budget, on streams that are not independent."""
    found = results("real_streams")["streams"]
    cells = {(one["stream"], one["arl"]): f"{one['ratio']:.2f}" + _in_brackets(one["plain"]) for one in found}
    lengths = sorted({one["arl"] for one in found})
    return table(
        ["stream", *(f"one in {arl:,.0f}" for arl in lengths)],
        ([name, *(cells[name, arl] for arl in lengths)] for name in dict.fromkeys(one["stream"] for one in found)),
    )


def real_streams_errors() -> str:
    """How many alarms the cells have."""
    found = [one for one in results("real_streams")["streams"] if one["ratio"] >= 0.3]
    fewest = {arl: min(one["alarms"] for one in found if one["arl"] == arl) for arl in {one["arl"] for one in found}}
    last = max(fewest)
    first = min(alarms for arl, alarms in fewest.items() if arl != last)
    return (
        f"A cell of 0.3 and more has at least {first} alarms, so a standard error of {100 / first**0.5:.0f} %;\n"
        f"in the last column at least {fewest[last]}, so {100 / fewest[last] ** 0.5:.0f} %."
    )


def real_streams_alarm() -> str:
    """Drifts and shifts together over the budget, if a shift is an alarm."""
    rows = results("real_streams_alarm")["streams"]
    both = {row["stream"]: row["ratio"] + row["shifts"] for row in rows}
    return (
        "On [these streams](evidence.md#on-streams-that-are-not-independent)\n"
        f'`mix="alarm"` raises {both["independent"]:.1f} times the budget\'s alarms if events are independent,\n'
        f"and up to {max(both.values()):.0f} times ({max(both, key=lambda name: both[name])})."
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
    head = ["errors at weekends", "events a week", "alarms over the budget", "events to find the fall"]
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
    return table(("a stream that stays within 3 points", "alarms over the budget", "with the tolerance"), rows) + (
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
        f"{len(courses) // len(parts)} courses of falls, further falls and recoveries, {streams} streams each "
        f"(`python benchmarks/hold.py`).\nEvery step is reported once and rightly in {', and in '.join(parts)}."
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


def budget_delays_medians() -> str:
    """Of what the delays are medians."""
    streams = {fall["streams"] for budget in results("choose_budget")["budgets"] for fall in budget["falls"]}
    return f"The delays are {medians(min(streams), 'choose_budget.py')}."


def budget_patience() -> str:
    """What the longest budget costs next to the shortest."""
    first, *_, last = results("choose_budget")["budgets"]
    more = [late["median"] / soon["median"] - 1 for soon, late in zip(first["falls"], last["falls"], strict=True)]
    return (
        f"**Patience is cheap.** {last['arl'] / first['arl']:.0f} times fewer false alarms, from one a "
        f"{first['patience']} to one a {last['patience']},\ncost {100 * min(more):.0f} to {100 * max(more):.0f} % more "
        "delay, because the delay grows with the logarithm of the budget."
    )


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
        f"{found['events']:,} events of {found['keys']:,} keys take {found['ratio']:.2f} times as long as a job that "
        f"only counts events\n(`python benchmarks/spark_batch.py`, median of {len(ends)} pairs, {ends[0]:.2f} to "
        f"{ends[-1]:.2f}), with {_exchanges(found['exchanges'])} in the plan."
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
        f"{found['keys']:,} keys in micro-batches of {found['batch']:,} events take {found['ratio']:.2f} times as "
        "long as the quicker of two stateful jobs\nthat only count (`python benchmarks/spark_streaming.py`, median of "
        f"{len(ends)} turns, {ends[0]:.2f} to {ends[-1]:.2f}).\nThat is {usual:.2f} times a count with "
        f"`applyInPandasWithState`, and {same:.2f} times one with packed events and our kind of state."
    )


def spark_kill_sentence() -> str:
    """What became of a streaming query that was killed; nothing where that was not run."""
    if not (RESULTS / "spark_kill.json").exists():
        return ""
    found = results("spark_kill")
    kinds = ", ".join(f"{count} {kind}" for kind, count in found["kills"].items())
    right = "None was lost or repeated, and the state is to the last digit that of a run without kills"
    return (
        f"{sum(found['kills'].values())} kills (`python benchmarks/spark_kill.py`; {kinds}), "
        f"{found['drifts']} changed rates.\n{'; '.join(found['wrong']) or right}."
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
        f"On a real broker (`python benchmarks/kafka_kill.py`), {kill['kills']} members were killed, {kill['ended']} "
        f"ended, {kill['zombies']} stopped until\nothers had their partitions, and the broker was killed "
        f"{kill['broker_kills']} times. Of {kill['events']:,} events of {kill['keys']:,} keys\nnone was lost or "
        "counted twice, and the saved states are byte for byte those of an undisturbed bank.\n"
        f"Each of {kill['drifts']:,} drifts was produced, under one id, with "
        f"{kill['produced'] / max(kill['drifts'], 1):.2f} messages a drift.\n\n"
        "Speed with 100,000 keys, next to the same number of bare loops that only consume and decode "
        "(`python benchmarks/kafka_speed.py`):\n\n" + table(head, rows)
    )


def serve_kafka_sentence() -> str:
    """What became of a service that takes a topic, killed again and again."""
    found = results("serve_kafka")
    outcome = "; ".join(found["wrong"]) or "each counted exactly once"
    return (
        f"On a real broker (`python benchmarks/serve_kafka.py`), after {found['kill'] + found['committed']} kills of "
        f"the server, {found['committed']} of them right after a commit,\nand {found['broker']} of the broker: "
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
        ["store", "kills", "requests", "events", "findings", "drifts alerted", "deliveries", "lost", "counted twice"],
        rows,
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
        f"After {clock['jumps']} leaps of the clock all {clock['waited']:,} predictions still waited.",
        f"{cuts['cuts']} cut connections to PostgreSQL: {cuts['events']:,} events acknowledged, and exactly",
        "  these counted.",
        f"After {backup['kills']} killed backups every file was whole or absent.",
        f"{soak['events'] / 1e6:,.0f} million events: {memory[0]} MB after a tenth, {memory[-1]} MB at the end.",
    ]
    return "\n".join(line if line.startswith(" ") else f"- {line}" for line in lines)


# benchmarks/few_labels.py ------------------------------------------------------------------------------------


def few_labels_budget() -> str:
    """Run lengths of sampled events over those asked for."""
    ratios = [one["ratio"] for one in results("few_labels_budget")]
    inside = sum(0.8 <= ratio <= 1.3 for ratio in ratios)
    return (
        "With 0.5 to 100 % of the labels, with and without a reference and in three segments, the measured run\n"
        f"length is {min(ratios):.2f} to {max(ratios):.2f} of the budget, and within 0.8 to 1.3 in {inside} of\n"
        f"{len(ratios)} cases."
    )


def prediction_shifts() -> str:
    """Run lengths and delays of the share of predicted positives."""
    rows = results("few_labels_predictions")
    ratios = [one["ratio"] for one in rows if "ratio" in one]
    delays = {(one["positives"], one["times"]): one["delay"] for one in rows if "delay" in one}
    return (
        f"The measured run length is {min(ratios):.2f} to {max(ratios):.2f} of the one asked for. With `arl=100_000`\n"
        f"a share of 1 % that doubles is found after {delays[0.01, 2.0]:,.0f} predictions, one of 10 % after\n"
        f"{delays[0.1, 2.0]:,.0f}, and growth by half after {delays[0.01, 1.5]:,.0f} and {delays[0.1, 1.5]:,.0f}."
    )


def few_labels_delays() -> str:
    """Events until a fall is found, by a plan and by an even draw."""
    rows = [one for one in results("few_labels_delay") if one["share"] == 0.05]
    return table(
        ["positives", "errors doubled in", "evenly, events", "by plan", "speed-up"],
        (
            [
                f"{one['positives']:.0%}", one["fall"], f"{one['even']:,.0f}", f"{one['plan']:,.0f}",
                f"{one['even'] / one['plan']:.2f}",
            ]
            for one in rows
        ),
    )  # fmt: skip


def few_labels_coverage() -> str:
    """How often intervals of weighted rates hold."""
    shares = [
        share
        for one in results("few_labels_coverage")
        for name, share in one.items()
        if name.split()[-1] in ("now", "baseline")
    ]
    return f"Intervals at 90 % hold the rate of all events in {min(shares):.1%} to {max(shares):.1%} of streams."


# benchmarks/outside.py ---------------------------------------------------------------------------------------

OTHERS = ("ADWIN", "ADWIN of river", "SEED", "STEPD", "ABCD")


def outside_means() -> dict[str, tuple[float, float]]:
    """Mean F1 of all cases by detector, with its standard error; the best first."""
    rows, means = results("outside")["kdd"], {}
    for detector in dict.fromkeys(one["detector"] for one in rows):
        own = [one for one in rows if one["detector"] == detector]
        error = math.hypot(*(one["error"] for one in own)) / len(own)
        means[detector] = statistics.mean(one["f1"] for one in own), error
    return dict(sorted(means.items(), key=lambda item: -item[1][0]))


def counted_once(one: dict[str, Any]) -> float:
    """F1 if repeated alarms after a change are one hit."""
    hits = one["streams"] - one["missed"]
    return 2 * hits / max(2 * hits + one["false"] + one["missed"], 1)


def outside_table() -> str:
    """F1 and delay by case: FourRates, and of each other detector the better setting of two."""
    means = outside_means()
    chosen = results("outside")["choice"][0]["detector"]
    columns = [chosen, *(next(one for one in means if one.split(",")[0] == name) for name in OTHERS)]
    cases: dict[tuple[str, str, int], dict[str, Any]] = {}
    for one in results("outside")["kdd"]:
        cases.setdefault((one["data"], one["change"], one["width"]), {})[one["detector"]] = one

    def cell(one: dict[str, Any]) -> str:
        return f"{one['f1']:.2f}" + (" / -" if one["delay"] is None else f" / {one['delay']:,.0f}")

    lines = [
        [f"{'NOAA' if data == 'noaa' else data.capitalize()}, {change}{', gradual' if width else ''}"]
        + [cell(found[name]) for name in columns]
        for (data, change, width), found in cases.items()
    ]
    once = {name: statistics.mean(counted_once(found[name]) for found in cases.values()) for name in columns}
    lines.append(["mean F1", *(f"{means[name][0]:.2f} ± {means[name][1]:.2f}" for name in columns)])
    lines.append(["mean F1, a change found counted once", *(f"{once[name]:.2f}" for name in columns)])
    return table(["F1 / delay", "`FourRates`", *columns[1:]], lines)


def outside_choice() -> str:
    """Mean F1 on the streams on which the setting was chosen, the best of each way to watch, and on those above."""
    above = outside_means()
    shown = [one for one in results("outside")["choice"] if one["detector"] in above]
    return table(
        ["watched, tolerance, budget", "streams for the choice", "the streams above"],
        (
            [name, *(f"{mean:.3f} ± {error:.3f}" for mean, error in ((one["f1"], one["error"]), above[name]))]
            for name, one in ((one["detector"], one) for one in shown)
        ),
    )


def outside_nannyml() -> str:
    """Rows until an alarm on the data of NannyML."""
    return table(
        ["data", "alarm of `FourRates`", "started about", "alert by chunks"],
        (
            [one["data"], f"{one['fourrates']:,}", f"{one['started']:,}", f"{one['chunks']:,}"]
            for one in results("outside")["nannyml"]
        ),
    )


# benchmarks/nights.py and jobs.py -----------------------------------------------------------------------------------


def nights_table() -> str:
    """A fraud log looked at every night: what is found, when, and how many false drifts there are."""
    found = results("nights")["fraud"]
    names = {
        "FourRates": "`FourRates`, nothing else given",
        "rates=['tpr'], and a reference": '`rates=["tpr"]`, with a reference',
        "weekly SQL": "SQL: tpr by country and week, \\|z\\| > 3",
        "oracle": "a CUSUM that knows country and rates",
    }
    return table(
        ["", f"found, of {found['draws']}", "night, median", "start off by, days", "false drifts"],
        (
            [
                name,
                str(found[key]["found"]),
                f"{found[key]['night, median']:.0f}",
                "" if found[key]["off by days, median"] is None else f"{found[key]['off by days, median']:.1f}",
                "" if key == "oracle" else f"{found[key]['false drifts']:.1f}",
            ]
            for key, name in names.items()
        ),
    )


def slices_sentence() -> str:
    """How often a planted slice comes first, and how often another is called significant."""
    found = results("jobs")["slices"]
    rows = [found[f"{kind}, {share}"] for kind in ("one column", "two columns") for share in ("2%", "5%", "20%")]
    first, false = ([100 * one[kind] for one in rows] for kind in ("first", "false"))
    return (
        "Among 30 columns, a slice of one or two values with 2 to 20 % of the rows comes first in\n"
        f"{min(first):.0f} to {max(first):.0f} % of the draws in which a search of its own columns finds it.\n"
        f"Another one is called significant in {min(false):.0f} to {max(false):.0f} % (`python benchmarks/jobs.py`)."
    )
