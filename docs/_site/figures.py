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
PAPER = ("38 / 6", "16 / 13", "25 / 18", "95 / 18", "91 / 10", "95 / 9")  # its Table 1: hits / false alarms


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


def any_size_row() -> str:
    """The same in one row, for the README."""
    found = results("any_size")
    head = ["", *(arrow(*change) for change in found["changes"])]
    return table(head, [["`fr.FourRates(100_000)`", *(f"{row[1]:.2f}" for row in found["50000"]["rows"])]])


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
        "USENET1": "USENET1, of 400 changes, found within 20 events",
        "USENET2": "USENET2, of 400 changes, found within 50 events",
        "few positives": "1 % positives, of 100 changes, found {what}",
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
        for row in found[name]
    ]
    head = ("", "false alarms", "`FourRates`", "LFR", "ratio", "standard error of the difference")
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


def six_rows() -> str:
    """Hits and false alarms, below those of the paper, for the README."""
    rows = [
        [f"`fr.{name}`", *(f"{hits:.1f} / {false:.1f}" for hits, false, _ in cells)]
        for name, cells in results("six")["hits"].items()
    ]
    return table(["", *SCENARIOS], [["paper's LFR (its own figures, 100 streams)", *PAPER], *rows])


def coverage_table() -> str:
    """How often intervals hold the truth."""
    return table(
        ["change", "`started_between`", "`before`", "`after`", "error of `started`"],
        (
            [name, *(f"{one[key]:.2f}" for key in ("started_between", "before", "after")), f"{one['error']:,.0f}"]
            for name, one in results("six")["coverage"].items()
        ),
    )


# benchmarks/budget.py ----------------------------------------------------------------------------------------


def budget_table() -> str:
    """Run lengths measured over those asked for."""
    cells = {(one["null"], one["arl"]): one["ratio"] for one in results("budget")}
    lengths = sorted({arl for _, arl in cells})
    return table(
        ["stable stream", *(f"{arl:,.0f}" for arl in lengths)],
        ([null, *(f"{cells[null, arl]:.2f}" for arl in lengths)] for null in dict.fromkeys(null for null, _ in cells)),
    )


def budget_extremes() -> str:
    """How many cells lie outside, and whether some phase after a restart has too many alarms."""
    found = results("budget")
    ratios = [one["ratio"] for one in found]
    # As in the benchmark: beyond two deviations of a Poisson count.
    late = sum(n > 0 and ratio * (1 - 2 / math.sqrt(n)) > 1.5 for one in found for ratio, n in one["phases"].values())
    phases, have = ("No phase", "has") if late == 0 else (f"{late} phases", "have")
    return (
        f"{sum(ratio < 0.9 for ratio in ratios)} of {len(ratios)} cells lie below 0.9, the lowest at {min(ratios):.2f}"
        f"; {sum(ratio > 2 for ratio in ratios)} above 2, where errors of a class come about once in a budget.\n"
        f"{phases} after a restart, within the first 100, 300, 1,000 or 5,000 events, "
        f"{have} more than 1.5 times\nits share of the alarms, beyond two standard errors."
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


def real_streams_above() -> str:
    """The cells above the aim of three times the budget."""
    found = results("real_streams")["streams"]
    above = [one for one in found if one["ratio"] > 3]
    cells = ", ".join(
        f"{one['stream']}, one in {one['arl']:,.0f}: {one['ratio']:.2f} (standard error "
        f"{one['ratio'] / one['alarms'] ** 0.5:.1f})"
        for one in above
    )
    return f"The aim is at most three times the budget; above it of {len(found)} cells: {cells or 'none'}."


def real_streams_alarm() -> str:
    """Drifts and shifts together over the alarms asked for, where a shift is an alarm."""
    rows = results("real_streams_alarm")["streams"]
    both = {row["stream"]: row["ratio"] + row["shifts"] for row in rows}
    classes = [both[name] for name in both if name.startswith(("positives in runs", "class mix"))]
    return (
        f"On the same streams, with one alarm in {rows[0]['arl']:,.0f} asked for, drifts and shifts together are "
        f"{both['independent']:.2f} of those asked for\nwhere events are independent, {min(classes):.2f} to "
        f"{max(classes):.2f} where classes come in runs or seasons, and at most {max(both.values()):.2f} "
        f"({max(both, key=lambda name: both[name])})."
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


def injected_table() -> str:
    """How often an injected change is found on elecNorm, by the end of three months."""

    def cells(one: Any) -> list[str]:
        alone = one["without flips"]
        without = "none" if alone is None else f"month {math.ceil(alone)}"
        return [f"{one['fall of tnr']:.3f}", *(f"{share:.0%}" for share in one["found by month"]), without]

    return table(
        ["model", "order", "tnr falls by", "month 1", "month 2", "month 3", "such an alarm without the change"],
        (
            [one["model"], order, *cells(one[key])]
            for one in results("real_streams")["elecNorm"]
            for order, key in (("as recorded", "injected"), ("shuffled within months", "injected, shuffled"))
        ),
    )


# benchmarks/peers/streams.py ---------------------------------------------------------------------------------


def peers_streams_table() -> str:
    """Alarms of other libraries' detectors per 100,000 events of streams that do not change."""
    found = results("peers_streams")
    head = ["stream", *(row["detector"].replace("capymoa", "CapyMOA") for row in found["rows"])]
    return table(
        head,
        (
            [name, *(f"{row['alarms'][name]:.{0 if row['alarms'][name] >= 100 else 1}f}" for row in found["rows"])]
            for name in found["streams"]
        ),
    )


# benchmarks/dispersion_cost.py -------------------------------------------------------------------------------


def dispersion_cost() -> str:
    """What the estimate of dispersion costs on independent streams, and on correlated ones."""
    found = results("dispersion_cost")
    ratios = {one["change"]: one["ratio"] for one in found["independent"]}
    worst = max(ratios, key=lambda change: ratios[change])
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    repeated = found["repeated"]
    return (
        f"On independent streams the estimate costs {mean - 1:.0%} in median delay over the ten changes of\n"
        f"[any size](any-size.md) and the paper's six scenarios, {ratios[worst] - 1:.0%} at most ({worst}). "
        f"A fall of tnr from 0.9 to 0.8\nwhere errors repeat with probability 0.3 is found after "
        f"{repeated['estimated']:,.0f} events; a detector that is given the dispersion, {repeated['dispersion']:.2f},\n"
        f"needs {repeated['known']:,.0f}."
    ).replace("%", " %")


# benchmarks/reference.py and hold.py -------------------------------------------------------------------------


def reference_sentences() -> str:
    """Bad from the first event, and as good as the reference."""
    found = results("reference")
    bad, good = found["bad"], found["good"]
    kept = " and ".join(
        f"{one['ratio']:.2f} ± {one['standard error']:.2f} with {one['positives']:,} positives" for one in good
    )
    return (
        "A tpr of 0.5 from the first event on, where the reference has 0.8 of 1,000 positives: named within 1,500\n"
        f"events in {bad['named']:.1%} of {found['streams']:,} streams, after {bad['median']:,.0f} in the median. "
        f"As good as its reference, for a million events:\n{kept} in the reference, alarms over those asked\n"
        "for. The references are drawn for every stream, so their sampling error is part of it."
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


def hold_table() -> str:
    """Falls, further falls and recoveries, each reported once."""
    return table(
        [
            "course",
            "one false alarm in",
            "all reported once, as what it is",
            "but for alarms withdrawn",
            "the budget allows",
        ],
        (
            [
                one["course"],
                f"{one['arl']:,}",
                f"{one['right']:.1%}",
                f"{one['forgiven']:.1%}",
                f"{one['budget']:.1%}",
            ]
            for one in results("hold")["courses"]
        ),
    )


def staying_table() -> str:
    """False alarms of streams that stay where they are."""
    return table(
        ["stream that does not change", "false alarms over those asked for", "wrong ends among them"],
        ([one["stream"], f"{one['ratio']:.2f}", f"{one['recoveries']:.2f}"] for one in results("hold")["staying"]),
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


def stable_look_table() -> str:
    """How long false alarms stay open, by the share of positives: the range over budgets from 20,000 to a million."""
    rows = []
    for positives in (0.015, 0.1, 0.5):
        for normal in ("exact", "small", "learned"):
            own = [
                one
                for one in results("second_look")["stable"]
                if (one["positives"], one["normal"]) == (positives, normal)
            ]
            ranges = [
                [min(values), max(values)] for values in ([one[name] for one in own] for name in ("open", "confirmed"))
            ]
            withdrawn = sum(one["withdrawn"] * one["alarms"] for one in own) / sum(one["alarms"] for one in own)
            lengths = [one["run_length"] for one in own]
            shares = [f"{low:.0%} to {high:.0%}" for low, high in ranges]
            length = f"{min(lengths):.2f} to {max(lengths):.2f}"
            rows.append([f"{positives:.1%}", normal, *shares, f"{withdrawn:.0%}", length])
    return table(["positives", "normal", "open", "confirmed", "withdrawn", "run length over the budget"], rows)


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


def now_table() -> str:
    """Whether the intervals of now hold."""
    return table(
        ["where the interval is read", "holds the true rate in"],
        (
            [one["where"].strip().replace(" after", " observations after"), f"{one['coverage']:.1%}"]
            for one in results("second_look")["now"]
            if not one["where"].startswith("at a") or "," not in one["where"]
        ),
    )


def correlated_look_table() -> str:
    """False alarms on streams whose errors are correlated."""
    names = ("open", "confirmed", "withdrawn")
    return table(
        ["stable stream", "open", "confirmed", "withdrawn", "run length over the budget"],
        (
            [one["stream"], *(f"{one[name]:.0%}" for name in names), f"{one['run_length']:.2f}"]
            for one in results("second_look")["correlated"]
        ),
    )


def any_size_reference_sentence() -> str:
    """Small lasting changes against a reference."""
    found = results("any_size_reference")
    return (
        f"The ten changes of [any size](any-size.md) against a reference of {found['reference']:,} events: delay over\n"
        f"the limit {found['1000']['mean']:.2f} after 1,000 events of history, {found['50000']['mean']:.2f} after "
        "50,000 (geometric means)."
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
            cells.append("more" if one["median"] is None else f"{one['median']:,.0f} events, {one['time']}")
        rows.append([f"{fall['rate']} {arrow(round(fall['from'], 3), round(fall['to'], 3))}", *cells])
    return table(head, rows)


# benchmarks/spark_batch.py, spark_streaming.py, kafka_kill.py, kafka_speed.py, serve_kafka.py ------------------


def bank_speed_table() -> str:
    """Events a second and bytes a stream of banks of a million."""
    found = results("bank_speed")
    rows = [
        [one["bank"], f"{one['wall']:.1f}", f"{one['speed']:.1f}", f"{one['bytes']:,.0f}"] for one in found["banks"]
    ]
    speed = f"million events a second, with {found['threads']} threads"
    return table(["", speed, "of processor time", "bytes a stream"], rows)


def bank_speed_sentence() -> str:
    """The bank of LFR next to a loop over single detectors, and next to one stream."""
    found = results("bank_speed")
    loop, alone = found["loop over dense"], found["dense over alone"]
    return (
        "Per event, in the same run: a plain loop over a dictionary of 1,000 LFR detectors takes "
        f"{loop:.1f} times as long as the\nbank with dense keys; the bank takes {alone:.1f} times as long as "
        "`LFR.update_many` on one stream, whose state never\nleaves the processor's cache."
    )


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


def kill_table() -> str:
    """What became of processes that were killed at random moments."""
    rows = [
        [
            name,
            f"{one['kills']:,}",
            f"{one['rotations']:,}" if one["rotations"] else "",
            f"{one['events']:,}" if one["events"] else "",
            f"{one['alerts']:,}" if one["alerts"] else "",
            f"{one['deliveries'] / one['alerts']:.3f}" if one["alerts"] else "",
            f"{len(one['wrong'])}",
        ]
        for name, one in results("kill").items()
    ]
    return table(
        ["killed", "times", "rotations", "events", "alarms", "told, per alarm", "lost, twice or unreadable"], rows
    )


# benchmarks/fuzz_states.py, fuzz_files.py ---------------------------------------------------------------------

FUZZED = {
    "records": "records of detectors",
    "files": "states of detectors, checksum mended",
    "banks": "banks, checksum mended",
    "own": "states as detectors saved them",
    "csv": "CSV",
    "tsv": "TSV",
    "jsonl": "JSON lines",
    "parquet": "Parquet",
    "arrow": "Arrow, files and streams",
    "states": "states of `detect` and `watch`",
    "spools": "spools of alerts",
    "cache": "tables in the cache",
    "commands": "the command line on files of all kinds",
}


def fuzz_table() -> str:
    """What became of bytes that were changed at random."""
    found = {**results("fuzz_states"), **results("fuzz_files")}
    rows = []
    for name, one in found.items():
        refused, wrong, used = one.get("refused", 0), one.get("went wrong", 0), one.get("ran", one.get("read", 0))
        rows.append([FUZZED[name], f"{refused + wrong + used:,}", f"{refused:,}", f"{used:,}", f"{wrong:,}"])
    return table(["what", "tried", "refused", "taken", "went wrong"], rows)


# benchmarks/loop.py ------------------------------------------------------------------------------------------


def _three(values: list[float], form: str = ".1f") -> str:
    return " / ".join(format(value, form) for value in values)


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


def _loop_stream(one: dict[str, Any]) -> str:
    marks = [name for name in ("tuned", "injected") if one[name]]
    if _loop_version(one) < LOOP_VERSION:
        marks.append("earlier loop")
    return one["stream"] + "".join(f" ({name})" for name in marks)


def _with_errors(ahead: list[float], errors: list[float]) -> str:
    return " / ".join(f"**{by:+.1f}** ({error:.1f})" for by, error in zip(ahead, errors, strict=True))


def loop_table() -> str:
    """Accuracy, F1 and G-mean of the loop, told which of them counts, and of its peers."""
    return table(
        ["stream", "model", *LOOP_PEERS, "loop", "ahead (standard error)", "fits"],
        (
            [
                _loop_stream(one),
                one["model"],
                *(_three(one["scores"][who]) for who in (*LOOP_PEERS, "champion")),
                _with_errors(one["ahead"], one["errors"]),
                " / ".join(f"{fits:,}" for fits in one["fits"]),
            ]
            for one in _loop_rows()
        ),
    )


def loop_summary() -> str:
    """How many of the figures are short, and by how much."""
    shown = [one for one in _loop_rows() if not one["tuned"] and _loop_version(one) == LOOP_VERSION]
    if not shown:
        return "Not measured with this loop yet."
    pairs = [pair for one in shown for pair in zip(one["ahead"], one["errors"], strict=True)]
    ahead = sorted(by for by, _ in pairs)
    injected = [one for one in shown if one["injected"]]
    near, above = sum(by >= -0.5 for by in ahead), sum(by > 0 for by in ahead)
    return (
        f"Of {len(ahead)} figures on streams no constant was chosen on, {near} are at most half a point below "
        f"the best of the others\nand {above} are above it; the median is {ahead[len(ahead) // 2]:+.1f} points. "
        f"Of those that fall short,\n"
        f"{sum(by < -max(0.5, 2 * error) for by, error in pairs)} do so by more than two standard errors. Where a "
        f"change was injected the accuracy is higher in\n"
        f"{sum(one['ahead'][0] > 0 for one in injected)} of {len(injected)} cases."
    )


def loop_shortfalls() -> str:
    """The figures that fall short, each with its standard error."""
    names = ("accuracy", "F1", "G-mean")
    return table(
        ["stream", "model", "measure", "ahead", "standard error"],
        (
            [_loop_stream(one), one["model"], names[at], f"{one['ahead'][at]:+.1f}", f"{one['errors'][at]:.1f}"]
            for one in _loop_rows()
            for at in range(3)
            if one["ahead"][at] < -0.5 and _loop_version(one) == LOOP_VERSION
        ),
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
        ),
    )


# benchmarks/distribution.py ----------------------------------------------------------------------------------


def power_table() -> str:
    """Power of tests on features and labels, and of detectors on the rates, at the same false alarms."""
    found = results("dimensions")
    rows = [[change, *(f"{power:.2f}" for power in powers)] for change, *powers in found["power"]]
    return table(["power", *found["methods"]], rows)


def rand_table() -> str:
    """The Rand index of E-divisive next to what its authors published."""
    found: dict[str, dict[int, str]] = {}
    for one in results("distribution")["rand"]:
        cell = f"{one['rand']:.3f}, {one['standard_error']:.3f} ({one['published']:.3f})"
        found.setdefault(one["middle"], {})[one["rows"]] = cell
    sizes = (150, 300, 600)
    return table(
        ["G: ours, standard error (published)", *(f"{rows} rows" for rows in sizes)],
        ([name, *(cells.get(rows, "") for rows in sizes)] for name, cells in found.items()),
    )


def level_table() -> str:
    """How often each test finds a change where there is none, over the level."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in results("distribution")["level"]:
        found.setdefault(one["test"], []).append(one)
    return table(
        ["", *(f"d = {one['d']}" for one in next(iter(found.values()))), "runs", "standard error"],
        (
            [f"`{test}`", *(f"{one['ratio']:.2f}" for one in row), f"{row[0]['runs']:,}", f"{row[0]['error']:.2f}"]
            for test, row in found.items()
        ),
    )


def e_divisive_speed_table() -> str:
    """The time of one split, next to plain NumPy in the same run."""
    return table(
        ["rows", "features", "`EDivisive`, ms", "NumPy, ms", "ratio"],
        (
            [
                f"{one['rows']:,}",
                str(one["d"]),
                f"{1e3 * one['seconds']:.1f}",
                f"{1e3 * one['numpy_seconds']:.0f}",
                f"{one['ratio']:.0f}",
            ]
            for one in results("distribution")["speed"]
        ),
    )


# benchmarks/serve_load.py, serve_kill.py, serve_fuzz.py ------------------------------------------------------


def serve_load_table() -> str:
    """How fast the service takes events, against a bare endpoint."""

    def speed(rate: float, p99: float) -> str:
        return f"{rate:,.0f}, {p99:.0f} ms"

    found = {name: one for part in ("columns", "ids", "single") for name, one in results(f"serve_load_{part}").items()}
    return table(
        ["requests a second, 99th percentile", "service", "bare endpoint", "ratio", "aim"],
        (
            [
                name,
                speed(one["ours"], one["p99 ms"]),
                speed(one["bare"], one["bare p99 ms"]),
                f"{one['ratio']:.2f}",
                f"{one['mark']:g}",
            ]
            for name, one in found.items()
        ),
    )


def serve_load_sentences() -> str:
    """What else was measured of a service under load."""
    parts = ("arrow", "late", "day", "memory", "single", "stream")
    arrow, late, day, memory, single, readers = (next(iter(results(f"serve_load_{one}").values())) for one in parts)
    each = (memory["bytes"] - memory["empty"]) / 1e6

    def percent(part: float) -> str:
        return f"{100 * part:.1f} %"

    lines = [
        f"Arrow in batches of 10,000: {arrow['events a second'] / 1e6:.1f} million events a second.",
        f"Single events at half of the highest rate: 99 % are answered within {single['p99 ms at half']:.0f} ms;",
        f"  by the bare endpoint at this rate, within {single['bare p99 ms at half']:.0f} ms.",
        f"200 readers of the stream, half of which do not read: {percent(readers['cost'])} fewer requests a second",
        f"  (standard error {percent(readers['standard error'])}); they take",
        f"  {percent(readers['share of a core'])} of a core ({percent(readers['its standard error'])}).",
        f"Ten million predictions that wait take {late['bytes each']:.0f} bytes each. Their labels, in random order,",
        f"  come in at {late['ratio']:.2f} times the rate of pairs.",
        f"  After a kill all of them are there again in {late['start-up s']:.0f} s.",
        f"100 monitors with 10,000 segments each take {memory['bytes'] / 1e9:.3f} GB; the aim was 1 GB.",
        f"  A segment takes {each:,.0f} bytes: its record, its name and its places in two indexes.",
        f"A day of traffic, {day['events']:,} pairs with late labels: {day['MB after 4 h']:.0f} MB after four hours,",
        f"  {day['MB after 24 h']:.0f} MB after 24.",
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
        f"{bombs['requests']:,} small bodies made to do harm were answered, the slowest in",
        f"  {bombs['slowest_seconds']:.1f} s, with {above:,} MB above rest at most, of {allowed:,} allowed;",
        f"  so were {bombs['honest_requests']:,} honest requests beside them,",
        f"  the slowest in {bombs['honest_slowest_seconds']:.1f} s.",
        f"The clock jumped {clock['jumps']} times, by up to {clock['largest_days']:.0f} days ahead or back:",
        f"  {clock['waited']:,} predictions still waited, and all {clock['drifts told']} drifts were told.",
        f"Two servers on one PostgreSQL had {cuts['cuts']} connections cut, at any message:",
        f"  {cuts['events']:,} events were acknowledged, and exactly these were counted.",
        f"`fourrates serve backup` was killed {backup['kills']} times:",
        f"  {backup['whole']} files were whole, the others were not there.",
        f"{soak['events'] / 1e6:,.0f} million events: {memory[0]} MB after a tenth of them,",
        f"  {memory[-1]} MB at the end, {max(memory)} MB at most.",
    ]
    return "\n".join(line if line.startswith(" ") else f"- {line}" for line in lines)
