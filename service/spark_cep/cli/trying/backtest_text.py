"""The report of a back-test as people read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from spark_cep.backtest.replay import NOT_SIMULATED, begun
from spark_cep.backtest.report import BacktestReport
from spark_cep.cli.terminal import table
from spark_cep.errors import printable
from spark_cep.event_times import time_text

if TYPE_CHECKING:
    from spark_cep.backtest.comparison import Changed, CompareReport, RuleComparison
    from spark_cep.backtest.expectations import ExpectationVerdict
    from spark_cep.backtest.unpaired import Compared

_WIDEST_BAR = 40
_MOST_DAYS = 31


def show(report: BacktestReport, console: Console) -> None:
    """Print the report."""
    rate = report.records / max(report.seconds, 1e-3)
    rules = list(report.rules.values())
    total = sum(each.nanoseconds for each in rules) or 1
    # Of rules in SQL with ALL ROWS PER MATCH, which write no others.
    match_rows = sum(each.rows for each in rules)
    console.print(
        f"{report.records:,} records in {report.seconds:.1f} s ({rate:,.0f} records/s)."
        f" Matches: {report.matches:,}, {f'match rows: {match_rows:,}, ' if match_rows else ''}"
        f"late events: {report.late:,}, dead letters: {report.dead_letters.total():,}",
    )
    columns = (
        "rule", "version", "matches", *(["rows"] if match_rows else []), "timeouts", "open",
        "events", "dead letters", "cost", "share",
    )  # fmt: skip
    table(
        console,
        "Rules",
        columns,
        [
            [
                printable(each.id), str(each.version), str(each.matches),
                *([str(each.rows)] if match_rows else []), str(each.timeouts), str(each.open),
                str(each.events), str(each.dead_letters), f"{each.nanoseconds / 1e9:.3f} s",
                f"{100 * each.nanoseconds / total:.0f} %",
            ]
            for each in rules
        ],
    )  # fmt: skip
    _days(report, console)
    _histogram(report, console)
    keys = [
        [printable(each.id), _key(key), str(count)]
        for each in rules
        for key, count in each.keys.top[:5]
    ]
    if keys:
        table(console, "Keys with most matches", ("rule", "key", "matches"), keys)
    if report.longest:
        rows = [
            [
                printable(each.rule_id), _key(each.key), time_text(begun(each)),
                ", ".join(f"{name} {len(events)}" for name, events in each.steps.items()),
                ", ".join(each.waits_for) or "-",
            ]
            for each in report.longest
        ]  # fmt: skip
        title = "Partial matches that are open longest"
        table(console, title, ("rule", "key", "since", "events", "waits for"), rows)
    if report.dead_letters:
        rows = [
            [reason, str(count), printable(report.examples[reason])]
            for reason, count in report.dead_letters.most_common()
        ]
        table(console, "Dead letters", ("reason", "count", "the first one"), rows)
    console.print(f"\nNot simulated: {', '.join(NOT_SIMULATED)}", markup=False)


def _days(report: BacktestReport, console: Console) -> None:
    rows = [
        [printable(each.id), day, str(each.by_day[day]), str(each.timeouts_by_day[day])]
        for each in report.rules.values()
        for day in sorted({*each.by_day, *each.timeouts_by_day})[-_MOST_DAYS:]
    ]
    if rows:
        table(console, "By day (UTC)", ("rule", "day", "matches", "timeouts"), rows)


def _histogram(report: BacktestReport, console: Console) -> None:
    bars = report.histogram
    if not bars:
        return
    most = max(count for _, _, count in bars)
    console.print("\nMatches over time", style="bold")
    for begin, _, count in bars:
        bar = "█" * -(-count * _WIDEST_BAR // most)
        console.print(f"{time_text(begin)[:16].replace('T', ' ')}  {bar} {count:,}".rstrip())


def _key(key: str | None) -> str:
    return "-" if key is None else printable(key)


def show_verdicts(verdicts: Sequence[ExpectationVerdict], console: Console) -> None:
    """Print what is as expected, and what is not."""
    if not verdicts:
        return
    console.print("\nExpectations", style="bold")
    for each in verdicts:
        state = "ok    " if each.wrong is None else "warn  " if each.warning else "FAILED"
        found = "" if each.wrong is None else f": {each.wrong}"
        console.print(f"{state}  {printable(each.title)}{printable(found)}", markup=False)


def show_comparison(report: CompareReport, console: Console) -> None:
    """Print what differs between two rule sets."""
    rows = [
        [
            printable(each.id), str(each.both), str(each.changed), str(each.only_old),
            str(each.only_new),
        ]
        for each in report.rules
    ]  # fmt: skip
    console.print(f"{report.records:,} records, matches and timeouts compared")
    columns = ("rule", "both", "other measures", "only old", "only new")
    table(console, "Rules", columns, rows)
    for rule in report.rules:
        for line in _rule_lines(rule):
            console.print(line, markup=False)


def _rule_lines(rule: RuleComparison) -> Iterator[str]:
    if not rule.words and not rule.differs:
        return
    yield ""
    yield printable(rule.id)
    for line in rule.words:
        yield f"  {line}"
    for title, count, examples in (
        ("only the old rules find", rule.only_old, rule.examples_old),
        ("only the new rules find", rule.only_new, rule.examples_new),
    ):
        if examples:
            yield f"  {title}{_first(len(examples), count)}:"
        for each in examples:
            yield f"    {_result(each.result)}"
            yield from (f"      {line}" for line in each.why)
    if rule.examples_changed:
        yield f"  with other measures{_first(len(rule.examples_changed), rule.changed)}:"
        yield from (f"    {_changed(each)}" for each in rule.examples_changed)


def _first(shown: int, count: int) -> str:
    return f", the first {shown} of {count:,}" if count > shown else ""


def _result(each: Compared) -> str:
    events = ", ".join(f"{name} {count}" for name, count in each.counts.items())
    return (
        f"{each.kind} of {_key(each.key)}, {time_text(each.start)} to {time_text(each.time)}:"
        f" {events}"
    )


def _changed(each: Changed) -> str:
    measures = ", ".join(
        f"{name} {_shown(old)} → {_shown(new)}" for name, (old, new) in each.measures.items()
    )
    return f"{_result(each.new)}: {measures}"


def _shown(value: Any) -> str:
    return "NULL" if value is None else printable(str(value))
