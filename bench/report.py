"""Figures for people: Markdown tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from spark_cep.observability.start_clock import Phase

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
#: Of a profile, what is less than this part of the largest stage is left out.
_LEAST_SHARE = 0.01
#: Spark's sum of its own stages.
_SUM = "triggerExecution"
_NUMBER = re.compile(r"[*+-]*\d[\d,.]*.*|")
_TITLES = {
    "throughput": "Throughput",
    "payments": "Payments",
    "relevant": "All events relevant, and looking back",
    "several": "Several rules for every event",
    "sql": "Rules in SQL",
    "state-growth": "State grows",
    "rules": "Rules grow",
    "cliffs": "Kinds of condition",
    "latency": "Latency",
    "rule-changes": "Rules that change",
    "start": "Start",
    "scaling": "Cores and state partitions",
    "input-partitions": "Input partitions",
    "quick": "The main ratios",
}


def text_of_all(
    documents: Mapping[str, Mapping[str, Any]], plots: Mapping[str, str] | None = None
) -> str:
    """A section for each benchmark; ``plots``: file names by benchmark."""
    parts = []
    for name, title in _TITLES.items():
        if name in documents:
            parts.append(f"### {title}\n\n{text(documents[name])}")
            if name in (plots or {}):
                parts.append(f"![{title}](performance/{(plots or {})[name]})\n")
    if "history" in (plots or {}):
        parts.append(f"### By version\n\n![By version](performance/{(plots or {})['history']})\n")
    return "\n".join(parts)


def put(page: Path, figures: str) -> None:
    """Replace what stands between the marks of ``page``; ValueError when it has none."""
    before, begin, rest = page.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page.name} needs the lines {BEGIN} and {END}, the first one first")
    page.write_text(f"{before}{BEGIN}\n\n{figures}\n{END}{after}", "utf-8")


def text(document: Mapping[str, Any]) -> str:
    """All that one benchmark found."""
    parts = [circumstances(document)]
    if "ratios" in document:
        parts.append(ratios(document["ratios"]))
    if "cliffs" in document:
        parts += cliffs(document["cliffs"])
    if "growth" in document:
        parts += [growth(document["growth"]), costs(document["costs"])]
    if "input_partitions" in document:
        parts.append(input_partitions(document))
    if "latency" in document:
        parts += latency(document)
    if "publish_to_active" in document:
        parts += rule_changes(document)
    if "starts" in document:
        parts.append(starts(document["starts"]))
    parts += [curve(name, points) for name, points in document.get("rates", {}).items()
              if isinstance(points, list)]  # fmt: skip
    parts += [
        f"{name.replace('_', ' ').capitalize()}: {value:g}."
        for name, value in document.items()
        if name.startswith("milliseconds_for_each")
    ]
    profiles = document.get("profiles") or (
        {"ours": document["profile"]} if "profile" in document else {}
    )
    if profiles:
        parts.append(stages(profiles))
    return "\n\n".join(parts) + "\n"


def starts(found: Mapping[str, Mapping[str, Any]]) -> str:
    """A row for each phase, a column for each kind of start."""
    rows = [
        [phase.value, *(f"{found[kind]['phases'].get(phase, 0.0):.2f}" for kind in found)]
        for phase in Phase
    ]
    rows.append(["**all, from the command**", *(f"**{s['seconds']:.2f}**" for s in found.values())])
    rows.append(["at most", *(f"{found[kind]['aim']:g}" for kind in found)])
    kinds = sorted({kind for each in found.values() for kind in each["processor"]})
    rows += [
        [
            f"processor, {kind}",
            *(f"{each['processor'].get(kind, 0.0):.2f}" for each in found.values()),
        ]
        for kind in kinds
    ]
    return table(["seconds", *found], rows)


def circumstances(document: Mapping[str, Any]) -> str:
    """Machine and versions in a sentence."""
    facts = document["facts"]
    versions = ", ".join(
        f"{label} {facts[name]}"
        for name, label in (
            ("spark", "Spark"), ("flink", "Flink"), ("java", "Java"), ("python", "Python"),
        )
        if name in facts
    )  # fmt: skip
    return (
        f"Version {facts['version']} ({facts['commit']}), {facts['date']}, {facts['cores']} cores"
        f" ({facts['processor']}), {facts['memory_gib']} GiB, {versions};"
        f" load before: {facts['load_before']}; medians of {document['runs_each']}."
    )


def ratios(found: Iterable[Mapping[str, Any]]) -> str:
    """A row for each ratio."""
    rows = [
        [
            one["name"],
            f"{one['events']:,}",
            f"{one['ours']:,}",
            one["other"],
            f"{one['theirs']:,}",
            f"**{one['ratio']:.2f}**",
            f"{one['low']:.2f} to {one['high']:.2f}",
            _aim(one),
        ]
        for one in found
    ]
    head = ["", "events", "ours, events/s", "next to", "events/s", "ratio", "of runs", "goal"]
    return table(head, rows)


def _aim(one: Mapping[str, Any]) -> str:
    return "" if one["aim"] is None else f"{one['aim']:g}"


def cliffs(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many kinds are slower than they may be, and a row for each."""
    measured = [one for one in found if "ratio" in one]
    slow = [one for one in measured if one["ratio"] < one["aim"]]
    head = ["kind", "workload", "events/s", "plain, events/s", "ratio", "of runs", "goal"]
    rows = [
        [
            one["kind"],
            one["workload"],
            f"{one['rate']:,}",
            f"{one['plain']:,}",
            f"**{one['ratio']:.2f}**" if one in slow else f"{one['ratio']:.2f}",
            f"{one['low']:.2f} to {one['high']:.2f}",
            _aim(one),
        ]
        for one in measured
    ]
    refused = sorted({one["kind"] for one in found if "refused" in one})
    differing = sorted({one["kind"] for one in measured if "differs" in one})
    told = [f"{len(slow)} of {len(measured)} below the goal."]
    told += [f"Not in the language: {'; '.join(refused)}."] if refused else []
    told += [f"**Other outputs than the plain rule: {'; '.join(differing)}.**"] if differing else []
    return [" ".join(told), table(head, rows)]


def growth(found: Sequence[Mapping[str, Any]]) -> str:
    """A row for each number of keys: batch, bytes for each partial match, largest memory."""
    others = sorted({side for one in found for side in one["bytes"]} - {"ours"})
    kinds = sorted({name for one in found for name in one["memory_mib"]})
    rows = [
        [
            f"{one['keys']:,}",
            f"{one['batch_seconds']:.2f}",
            f"{one['bytes']['ours'] / one['keys']:.0f}",
            *(
                f"{one['bytes'][side] / one['keys']:.0f}" if side in one["bytes"] else ""
                for side in others
            ),
            *(f"{one['memory_mib'].get(name, 0):,.0f}" for name in kinds),
        ]
        for one in found
    ]
    head = [
        "keys",
        "batch, s",
        "bytes each, ours",
        *(f"bytes each, {side}" for side in others),
        *(f"{name}, MiB" for name in kinds),
    ]
    return table(head, rows)


def costs(found: Iterable[Mapping[str, Any]]) -> str:
    """A row for each cost that may grow so far."""
    rows = [[one["name"], f"**{one['ratio']:.2f}**", _aim(one)] for one in found]
    return table(["", "ratio", "at most"], rows)


def latency(document: Mapping[str, Any]) -> list[str]:
    """Percentiles after warm-up and in the first minute, and the time of small batches."""
    load, cells = document["load"], document["latency"]
    behind = [f"{one['job']} at {one['rate']:,} events/s" for one in cells if not one["kept_up"]]
    told = (
        f"Each job ran for {load['settling']:g} s before {load['seconds']:g} s were measured. The"
        f" feed was late by {max(one['late_by'] for one in cells):g} s at most. In seconds, to the"
        " moment when a match is visible to a consumer of committed records: from the append of the"
        " event that completes it, and from the append of the event that lets the watermark pass;"
        " *written*: from the latter to the append of the match."
    )
    return [
        told,
        *([f"**Did not keep up: {'; '.join(behind)}.**"] if behind else []),
        "After warm-up:",
        _waits(cells, "warm"),
        "In the first minute:",
        _waits(cells, "first_minute"),
        *_small_batches(cells),
    ]


def _waits(cells: Iterable[Mapping[str, Any]], when: str) -> str:
    columns = ("median", "99th", "largest")
    head = [
        "events/s", "job", "matches", *(f"event: {column}" for column in columns),
        *(f"watermark: {column}" for column in columns), "written: median",
        "goal: watermark, median and 99th",
    ]  # fmt: skip
    rows = []
    for one in cells:
        found = one[when]
        figures = [found["event"].get(column) for column in columns]
        figures += [found["watermark"].get(column) for column in columns]
        figures.append(found["written"].get("median"))
        rows.append(
            [
                f"{one['rate']:,}",
                one["job"],
                f"{found['event']['count']:,}",
                *("" if figure is None else f"{figure:.3f}" for figure in figures),
                ", ".join("any" if goal is None else f"{goal:g}" for goal in one["goal"] or ()),
            ]
        )
    return table(head, rows)


def _small_batches(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Batches by rate and job, and the stages of those at the lowest rate."""
    ours = [one for one in cells if one["batches"]]
    if not ours:
        return []
    rows = [
        [
            f"{one['rate']:,}",
            one["job"],
            *(f"{one['batches'][column]:,}" for column in ("count", "events", "milliseconds")),
        ]
        for one in ours
    ]
    lowest = min(one["rate"] for one in ours)
    found = {one["job"]: one["batches"]["stages"] for one in ours if one["rate"] == lowest}
    most = {stage: max(one.get(stage, 0) for one in found.values())
            for one in found.values() for stage in one}  # fmt: skip
    stages = [
        [stage, *(f"{one.get(stage, 0):g}" for one in found.values())]
        for stage, spent in sorted(most.items(), key=lambda each: -each[1])
        if spent and stage != _SUM
    ]
    return [
        "Batches after warm-up, medians of events and milliseconds:",
        table(["events/s", "job", "batches", "events", "ms"], rows),
        f"Milliseconds of batches at {lowest:,} events/s by stage, medians:",
        table(["stage", *found], stages),
    ]


def input_partitions(document: Mapping[str, Any]) -> str:
    """Milliseconds of small batches, by stage and number of input partitions."""
    cells = document["input_partitions"]
    stages = sorted({stage for one in cells for stage in one["batches"]["stages"]})
    rows = [
        ["events", *(f"{one['batches']['events']:,}" for one in cells)],
        ["batch", *(f"{one['batches']['milliseconds']:,}" for one in cells)],
        *(
            [stage, *(f"{one['batches']['stages'].get(stage, 0):g}" for one in cells)]
            for stage in stages
            if stage != _SUM
        ),
    ]
    head = [f"medians, ms, {document['rate']:,} events/s"]
    return table([*head, *(f"{one['partitions']:,} partitions" for one in cells)], rows)


def rule_changes(document: Mapping[str, Any]) -> list[str]:
    """Percentiles from publishing a rule to a committed batch under it, and the speed kept."""
    found, speed = document["publish_to_active"], document["speed"]
    columns = ("changes", "median", "90th", "99th", "largest", "aim_median", "aim_99th")
    rates = [
        [
            name,
            f"{one['no_change']:,}",
            f"{one['changes']:,}",
            f"**{one['kept']:.2f}**",
            f"{one['aim']:g}",
        ]
        for name, one in speed.items()
    ]
    return [
        "Seconds from a rule's file to a committed batch under it:",
        table(
            [column.replace("aim_", "at most: ") for column in columns],
            [[f"{found[column]:,}" for column in columns]],
        ),
        "Events per second, and with a change every two seconds:",
        table(["", "no change", "changes", "kept", "goal"], rates),
    ]


def curve(name: str, points: Sequence[Sequence[int]]) -> str:
    """Events per second by a number, across."""
    head = [name, *(f"{count:,}" for count, _ in points)]
    return table(head, [["events/s", *(f"{rate:,}" for _, rate in points)]])


def stages(profiles: Mapping[str, Mapping[str, float]]) -> str:
    """Seconds by stage, a column for each profile."""
    totals: dict[str, float] = {}
    for found in profiles.values():
        for stage, seconds in found.items():
            totals[stage] = max(seconds, totals.get(stage, 0.0))
    totals.pop(_SUM, None)
    least = max(totals.values(), default=0.0) * _LEAST_SHARE
    rows = [
        [stage, *(f"{found.get(stage, 0.0):.2f}" for found in profiles.values())]
        for stage, seconds in sorted(totals.items(), key=lambda one: -one[1])
        if seconds >= least
    ]
    return "Seconds by stage, the service's own summed over tasks:\n\n" + table(
        ["stage", *profiles], rows
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; columns of figures stand to the right."""
    rule = [
        "---:" if rows and all(_NUMBER.fullmatch(row[column]) for row in rows) else "---"
        for column in range(len(head))
    ]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))
