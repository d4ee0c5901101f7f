"""The output of ``spark-cep state``: a checkpoint's content as tables for people, or as JSON."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from spark_cep.cli.terminal import table
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, RuleSetError
from spark_cep.matcher.findings.partial import FOREVER
from spark_cep.pipeline.driver.commands.state_report import (
    RuleReport,
    Size,
    StateReport,
    StoredPartialMatch,
)
from spark_cep.pipeline.match.watermark import BEGINNING, END
from spark_cep.rules.sources.configured import rules_of


def moment(time: int | None) -> str | None:
    """A time in milliseconds as ISO 8601, UTC; ``None`` where there is none."""
    if time is None or time <= BEGINNING or time == FOREVER:
        return None
    if time >= END:
        return "end of time"
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=time)
    return moment.isoformat(timespec="milliseconds")


def step_names(settings: Settings) -> dict[str, tuple[str, ...]]:
    """The names of steps by a rule's fingerprint, as far as the source of the rules has them; none
    where it cannot be read."""
    try:
        plans = compile_rules(rules_of(settings).enabled).plans
    except (RuleSetError, ConfigurationError):
        return {}
    return {plan.fingerprint: plan.steps for plan in plans}


def as_json(report: StateReport, steps: Mapping[str, Sequence[str]]) -> str:
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
        document["partial_matches"] = [_partial(partial, steps) for partial in report.of_key]
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


def _partial(partial: StoredPartialMatch, steps: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    names = steps.get(partial.fingerprint)
    return {
        "rule": partial.rule,
        "version": partial.version,
        "key_group": partial.key_group,
        "began": moment(partial.began),
        "deadline": moment(partial.deadline),
        "events": [
            {
                "step": names[step] if names else str(step),
                "topic": topic,
                "partition": partition,
                "offset": offset,
            }
            for step, topic, partition, offset in partial.events
        ],
    }


def show(report: StateReport, steps: Mapping[str, Sequence[str]], console: Console) -> None:
    """Print the report as tables."""
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
        columns = ("rule", "version", "key group", "began", "deadline", "events")
        rows = [_partial_row(_partial(partial, steps)) for partial in report.of_key]
        table(console, "Partial matches of the key", columns, rows)


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


def _partial_row(partial: Mapping[str, Any]) -> list[str]:
    columns = ("rule", "version", "key_group", "began", "deadline")
    events = ["{step}={topic}/{partition}/{offset}".format(**event) for event in partial["events"]]
    return [*(_text(partial[name]) for name in columns), "  ".join(events)]


def _size(size: Size) -> list[str]:
    return [str(size.bytes), str(size.keys), str(size.partial_matches), str(size.waiting)]


def _size_text(size: Size) -> str:
    return (
        f"{size.bytes} bytes, {size.keys} keys, {size.partial_matches} partial matches,"
        f" {size.waiting} waiting events"
    )


def _text(value: Any) -> str:
    return "-" if value is None else str(value)
