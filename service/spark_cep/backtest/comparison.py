"""Two rule sets over the same events: what only one of them finds, and what both find differently.

Results are the same where rule, key and the events of each step are, whatever the version. Held in
memory are results of one side that the other has not found, or not found yet: the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Any, NamedTuple

from spark_cep.backtest.replay import ReplayedBatch
from spark_cep.backtest.rows import time_text
from spark_cep.codecs.output.values import output_value
from spark_cep.compiler.explain.difference import difference
from spark_cep.match_ids import match_id
from spark_cep.model import Match, Timeout
from spark_cep.rules.rule_set import RuleSet

_MOST_EXAMPLES = 5
_OLD, _NEW = 0, 1


class Compared(NamedTuple):
    """A result of one side. ``time``: that of a match, the deadline of a timeout; ``events``: how
    many of each step."""

    kind: str
    rule: str
    key: str | None
    start: int
    time: int
    events: tuple[tuple[str, int], ...]
    measures: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            "kind": self.kind,
            "key": self.key,
            "start": time_text(self.start),
            "time": time_text(self.time),
            "events": dict(self.events),
            "measures": {name: _shown(value) for name, value in self.measures.items()},
        }


def _shown(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class Changed(NamedTuple):
    """A result of both sides with other measures."""

    old: Compared
    new: Compared

    @property
    def measures(self) -> dict[str, tuple[Any, Any]]:
        """The measures that differ: before and after."""
        return {
            name: (self.old.measures.get(name), self.new.measures.get(name))
            for name in dict.fromkeys((*self.old.measures, *self.new.measures))
            if self.old.measures.get(name) != self.new.measures.get(name)
        }


@dataclass
class RuleComparison:
    """The comparison of one rule. ``words``: how its versions differ."""

    id: str
    words: list[str]
    both: int = 0
    changed: int = 0
    only_old: int = 0
    only_new: int = 0
    examples_changed: list[Changed] = field(default_factory=list)
    examples_old: list[Compared] = field(default_factory=list)
    examples_new: list[Compared] = field(default_factory=list)

    @property
    def differs(self) -> bool:
        """Return whether the results do."""
        return bool(self.changed or self.only_old or self.only_new)

    def as_json(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        return {
            "id": self.id,
            "difference": self.words,
            "both": self.both,
            "changed_measures": self.changed,
            "only_old": self.only_old,
            "only_new": self.only_new,
            "examples": {
                "changed_measures": [
                    {
                        **each.new.as_json(),
                        "changed": {
                            name: [_shown(old), _shown(new)]
                            for name, (old, new) in each.measures.items()
                        },
                    }
                    for each in self.examples_changed
                ],
                "only_old": [each.as_json() for each in self.examples_old],
                "only_new": [each.as_json() for each in self.examples_new],
            },
        }


@dataclass(frozen=True)
class CompareReport:
    """The differences between two rule sets, rule by rule."""

    records: int
    rules: list[RuleComparison]

    def as_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {"records": self.records, "rules": [each.as_json() for each in self.rules]}


class Comparison:
    """Pairs the results of an old and a new rule set."""

    def __init__(self, old: RuleSet, new: RuleSet) -> None:
        self._rules = {
            rule: RuleComparison(rule, [*_words(rule, old, new)])
            for rule in dict.fromkeys((*old.by_id, *new.by_id))
        }
        self._waiting: tuple[dict[str, Compared], dict[str, Compared]] = ({}, {})

    def add(self, old: ReplayedBatch, new: ReplayedBatch) -> None:
        """Take in the results of a batch."""
        for side, found in ((_OLD, old), (_NEW, new)):
            for match in found.objects.matches:
                self._add(side, "match", match, match.time)
            for timeout in found.objects.timeouts:
                self._add(side, "timeout", timeout, timeout.deadline)

    def _add(self, side: int, kind: str, result: Match | Timeout, time: int) -> None:
        identity = kind[0] + match_id(result.rule_id, 0, result.key, result.steps)
        events = tuple((name, len(taken)) for name, taken in result.steps.items())
        measures = {name: output_value(value) for name, value in result.measures.items()}
        mine = Compared(kind, result.rule_id, result.key, result.start, time, events, measures)
        other = self._waiting[1 - side].pop(identity, None)
        if other is None:
            self._waiting[side][identity] = mine
            return
        rule = self._rules[mine.rule]
        if mine.measures == other.measures:
            rule.both += 1
            return
        rule.changed += 1
        if len(rule.examples_changed) < _MOST_EXAMPLES:
            pair = (other, mine) if side == _NEW else (mine, other)
            rule.examples_changed.append(Changed(*pair))

    def ended(self, records: int) -> CompareReport:
        """The report at the end, after so many records."""
        return CompareReport(records, [*self._ended()])

    def _ended(self) -> Iterator[RuleComparison]:
        by_rule: tuple[dict[str, list[Compared]], ...] = ({}, {})
        for side, waiting in enumerate(self._waiting):
            for each in waiting.values():
                by_rule[side].setdefault(each.rule, []).append(each)
        for rule in self._rules.values():
            for side in (_OLD, _NEW):
                alone = by_rule[side].get(rule.id, [])
                first = nsmallest(_MOST_EXAMPLES, alone, key=lambda each: each.time)
                if side == _OLD:
                    rule.only_old, rule.examples_old = len(alone), first
                else:
                    rule.only_new, rule.examples_new = len(alone), first
            yield rule


def _words(rule: str, old: RuleSet, new: RuleSet) -> Iterator[str]:
    before, after = old.by_id.get(rule), new.by_id.get(rule)
    if before is None:
        yield "it is new"
    elif after is None:
        yield "it is gone"
    else:
        yield from difference(before.rule, after.rule)
