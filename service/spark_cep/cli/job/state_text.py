"""The output of ``spark-cep state``: a checkpoint's content as tables for people, or as JSON."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from rich.console import Console

from spark_cep.cli.terminal import table
from spark_cep.compiler.rule_set import AnyPlan, compile_rule
from spark_cep.config import Settings
from spark_cep.errors import RuleSetError
from spark_cep.matcher.findings.live import ahead
from spark_cep.matcher.findings.partial import FOREVER
from spark_cep.pipeline.driver.commands.state_report import (
    RuleReport,
    Size,
    StateReport,
    StoredPartialMatch,
)
from spark_cep.pipeline.match.watermark import BEGINNING, END
from spark_cep.watch.rules_of_batch import rules_of_batch
from spark_cep.why.times import instant_text


def moment(time: int | None) -> str | None:
    """A time in milliseconds as ISO 8601, UTC; ``None`` where there is none."""
    if time is None or time <= BEGINNING or time == FOREVER:
        return None
    if time >= END:
        return "end of time"
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=time)
    return moment.isoformat(timespec="milliseconds")


#: Plans by a rule's id and version.
Plans = Mapping[tuple[str, int], AnyPlan]


def plans_of(settings: Settings, batch: int | None = None) -> Plans:
    """The plans of a job's rules: of those of a ``batch``, which a checkpoint on a local disk has
    logged; else of those of their source, none where it cannot be read."""
    found = {}
    for each in rules_of_batch(settings, batch):
        # One that needs the types of events to be compiled is shown by numbers.
        with suppress(RuleSetError):
            found[each.rule.id, each.rule.version] = compile_rule(each.rule)
    return found


def as_json(report: StateReport, plans: Plans) -> str:
    """The report as one JSON document. Times are ISO 8601 or null."""
    position = report.position
    document: dict[str, Any] = {
        "checkpoint": report.checkpoint,
        "query": position.query,
        "batch": position.batch,
        "committed_batch": position.committed,
        "format": report.layout["format"],
        "key_groups": report.layout["key_groups"],
        "buckets": report.layout["buckets"],
        "state_partitions": position.committed_partitions,
        "watermark": moment(report.watermark),
        "next_due": moment(report.next_due),
        "clock": [
            {"topic": topic, "partition": partition, "time": moment(time)}
            for topic, partition, time in report.clock
        ],
        "offsets": position.offsets,
        "total": asdict(report.total),
        "rules": [_rule(rule) for rule in report.rules],
        "partitions": [
            {"partition": number, **asdict(size)} for number, size in report.partitions.items()
        ],
        "largest_key_groups": [
            {"key_group": number, "partition": partition, **asdict(size)}
            for number, partition, size in report.groups
        ],
        "largest_buckets": [
            {"key_group": number, "bucket": name, **asdict(size)}
            for number, name, size in report.buckets
        ],
    }
    if report.of_key is not None:
        document["partial_matches"] = [partial_data(each, plans) for each in report.of_key]
    return json.dumps(document, indent=2)


def _rule(rule: RuleReport) -> dict[str, Any]:
    return {
        "id": rule.id,
        "version": rule.version,
        "keys": rule.held.keys,
        "partial_matches": rule.held.partial_matches,
        "bytes_about": rule.bytes,
        "oldest_event": moment(rule.held.oldest),
        "next_deadline": moment(rule.held.due),
    }


def partial_data(partial: StoredPartialMatch, plans: Plans) -> dict[str, Any]:
    """A partial match, and what it waits for, where its rule is known."""
    plan = plans.get((partial.rule, partial.version))
    found: dict[str, Any] = {
        "rule": partial.rule,
        "version": partial.version,
        "key_group": partial.key_group,
        "began": moment(partial.began),
        "deadline": moment(partial.deadline),
        "events": [
            {
                "step": str(step) if plan is None else plan.steps[step],
                "topic": topic,
                "partition": partition,
                "offset": offset,
            }
            for step, topic, partition, offset in partial.events
        ],
    }
    if plan is not None:
        found |= ahead(plan, partial.places)._asdict()
    return found


def show(report: StateReport, plans: Plans, console: Console, key: str | None) -> None:
    """Print the report as tables, with the partial matches of ``key`` if it was asked for."""
    position, layout = report.position, report.layout
    done = f"batch {position.committed} committed"
    if position.uncommitted:
        what = "a rescale" if position.rescaling else "planned"
        done += f", batch {position.batch} {what} and not done"
    head = (
        ("checkpoint", report.checkpoint),
        ("query", f"{position.query}, {done}"),
        ("format", str(layout["format"])),
        ("key groups", f"{layout['key_groups']}, {layout['buckets']} buckets together"),
        ("partitions", str(position.committed_partitions)),
        ("watermark", moment(report.watermark) or "not yet"),
        ("next due", moment(report.next_due) or "nothing"),
        ("held", _size_text(report.total)),
    )
    width = max(len(name) for name, _ in head)
    for name, text in head:
        console.print(f"{name:{width}}  {text}", markup=False)
    for title, columns, rows in _tables(report):
        table(console, title, columns, rows)
    if report.of_key is not None:
        show_of_key(report.of_key, plans, console, key)


def show_of_key(
    partials: Sequence[StoredPartialMatch], plans: Plans, console: Console, key: str | None
) -> None:
    """Print the open partial matches of a key, ``None`` for rules without key."""
    of_key = "rules without key" if key is None else f"key {key}"
    title = f"\nOpen partial matches of {of_key}"
    lines = [line for each in partials for line in _partial_lines(each, plans)]
    console.print(title, style="bold", markup=False, highlight=False, soft_wrap=True)
    for line in lines or ["none; events that the watermark has not passed yet are not included"]:
        # As it is: a break within a time or a place could not be copied.
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _partial_lines(stored: StoredPartialMatch, plans: Plans) -> Iterator[str]:
    found = partial_data(stored, plans)
    line = f"{stored.rule}, version {stored.version}: began {instant_text(stored.began)}"
    if waits := _waits(found):
        line += f", waits for {waits}"
    yield f"{line}, until {instant_text(stored.deadline)}" if found["deadline"] else line
    for event in found["events"]:
        yield "  {step}  {topic}/{partition}/{offset}".format(**event)


_RULE = (
    "rule", "version", "keys", "partial matches", "bytes, about", "oldest event", "next deadline",
)  # fmt: skip
_SIZE = ("bytes", "keys", "partial matches", "waiting events")


def _tables(report: StateReport) -> Iterator[tuple[str, tuple[str, ...], list[list[str]]]]:
    """The title, columns and rows of each table."""
    yield (
        "Rules",
        _RULE,
        [[_text(value) for value in _rule(rule).values()] for rule in report.rules],
    )
    columns = ("topic", "partition", "largest event time")
    rows = [[name, str(n), moment(time) or "not read yet"] for name, n, time in report.clock]
    yield "Clock", columns, rows
    rows = [[str(number), *_size(size)] for number, size in report.partitions.items()]
    yield "State partitions", ("partition", *_SIZE), rows
    rows = [[str(number), str(at), *_size(size)] for number, at, size in report.groups]
    yield "Largest key groups", ("key group", "partition", *_SIZE), rows
    rows = [[str(number), name, *_size(size)] for number, name, size in report.buckets]
    yield "Largest buckets", ("key group", "bucket", *_SIZE), rows


def _waits(partial: Mapping[str, Any]) -> str:
    """The steps that could take an event, and those that must not come; empty if not known."""
    if "waits_for" not in partial:
        return ""
    forbidden = [f"not {name}" for name in partial["forbids"]]
    at_deadline = ["the deadline, with which it matches"] if partial["absence"] else []
    return " or ".join([*partial["waits_for"], *at_deadline, *forbidden])


def _size(size: Size) -> list[str]:
    return [str(size.bytes), str(size.keys), str(size.partial_matches), str(size.waiting)]


def _size_text(size: Size) -> str:
    return (
        f"{size.bytes} bytes, {size.keys} keys, {size.partial_matches} partial matches,"
        f" {size.waiting} waiting events"
    )


def _text(value: Any) -> str:
    return "-" if value is None else str(value)
