"""The tables at the end of the demo: in, out, and expected against found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from rich import box
from rich.table import Table

from examples.demo.arrivals import OUTPUT_TOPICS
from examples.demo.expected import RULES, Counts
from examples.demo.metrics import Progress


@dataclass(frozen=True)
class Result:
    """Everything that was counted in one demo. ``changed``: rules that a person has added or paused
    meanwhile, so that nothing can be expected."""

    sent: Counter[str]
    sent_tombstones: Counter[str]
    progress: Progress
    expected: Counts
    found: Counts
    changed: frozenset[str] = frozenset()

    def differences(self) -> list[str]:
        """Every count that is not as expected, as a sentence."""
        if self.changed:
            return []
        pairs = (
            ("records read from {}", self.sent, self.progress.read),
            ("tombstones in {}", self.sent_tombstones, self.progress.tombstones),
            ("matches of {}", _texts(self.expected.matches), _texts(self.found.matches)),
            ("timeouts of {}", _texts(self.expected.timeouts), _texts(self.found.timeouts)),
            ("late events of {}", self.expected.late, self.found.late),
            ("dead letters for {}", self.expected.dead_letters, self.found.dead_letters),
        )
        return [
            f"{what.format(name)}: expected {wanted[name]}, found {got[name]}"
            for what, wanted, got in pairs
            for name in dict.fromkeys((*wanted, *got))
            if wanted[name] != got[name]
        ]


def tables(result: Result) -> list[Table]:
    """The summary."""
    return [_in(result), _out(result), _rules(result), _rest(result)]


def _in(result: Result) -> Table:
    table = _table("input topic", "produced", "read by the job", "tombstones", "late")
    for topic, sent in result.sent.items():
        progress = result.progress
        counts = (sent, progress.read[topic], progress.tombstones[topic], progress.late[topic])
        table.add_row(topic, *map(str, counts))
    progress = result.progress
    counts = (
        result.sent.total(),
        progress.read.total(),
        progress.tombstones.total(),
        progress.late.total(),
    )
    table.add_section()
    table.add_row("all", *map(str, counts))
    return table


def _out(result: Result) -> Table:
    table = _table("output topic", "expected", "found", "")
    pairs = zip(OUTPUT_TOPICS, _parts(result.expected), _parts(result.found), strict=True)
    for topic, expected, found in pairs:
        _compare(table, topic, expected.total(), found.total())
    return table


def _rules(result: Result) -> Table:
    table = _table("rule", "expected", "found", "")
    kinds = (
        ("matches", result.expected.matches, result.found.matches),
        ("timeouts", result.expected.timeouts, result.found.timeouts),
    )
    for rule in RULES:
        for kind, expected, found in kinds:
            wanted, got = _of(rule, expected), _of(rule, found)
            if wanted or got:
                _compare(table, f"{rule}: {kind}", wanted, got)
    return table


def _rest(result: Result) -> Table:
    table = _table("late events and dead letters", "expected", "found", "")
    for what, expected, found in (
        ("late: ", result.expected.late, result.found.late),
        ("dead letter: ", result.expected.dead_letters, result.found.dead_letters),
    ):
        for name in dict.fromkeys((*expected, *found)):
            _compare(table, what + name, expected[name], found[name])
    return table


def _compare(table: Table, what: str, expected: int, found: int) -> None:
    verdict = "[green]ok[/]" if expected == found else "[bold red]differs[/]"
    table.add_row(what, str(expected), str(found), verdict)


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(first, min_width=36, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _parts(counts: Counts) -> Iterable[Counter[str]]:
    yield _texts(counts.matches)
    yield _texts(counts.timeouts)
    yield counts.late
    yield counts.dead_letters


def _texts(counts: Counter[tuple[str, str]]) -> Counter[str]:
    """Counts by rule and key, as ``rule for key``."""
    return Counter({f"{rule} for {key}": n for (rule, key), n in counts.items()})


def _of(rule: str, counts: Counter[tuple[str, str]]) -> int:
    return sum(number for (name, _), number in counts.items() if name == rule)
