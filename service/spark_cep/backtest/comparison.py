"""Two rule sets over the same events: what only one of them finds, and what both find differently.

Results are the same where rule, key and the events of each step are, whatever the version. Those
of one batch are paired in memory; what is left waits outside (:mod:`~spark_cep.backtest.unpaired`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spark_cep.backtest.replay import ReplayedBatch
from spark_cep.backtest.unpaired import NEW, OLD, Compared, Unpaired, plain
from spark_cep.compiler.explain.difference import difference
from spark_cep.match_ids import match_id
from spark_cep.matcher.findings.output_values import output_value
from spark_cep.model import Match, Timeout
from spark_cep.rules.rule_set import RuleSet

_MOST_EXAMPLES = 5


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

    def as_json(self) -> dict[str, Any]:
        """The result as JSON values."""
        changed = {name: [plain(old), plain(new)] for name, (old, new) in self.measures.items()}
        return {**self.new.as_json(), "changed": changed}


@dataclass
class Example:
    """A result that one side alone has found. ``why``: why the other one has not, in lines."""

    result: Compared
    why: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The example as JSON values."""
        return {**self.result.as_json(), "why": self.why}


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
    examples_old: list[Example] = field(default_factory=list)
    examples_new: list[Example] = field(default_factory=list)

    @property
    def differs(self) -> bool:
        """Return whether the results do."""
        return bool(self.changed or self.only_old or self.only_new)

    def pair(self, old: Compared, new: Compared) -> None:
        """Count a result that both sides have found."""
        if old.measures == new.measures:
            self.both += 1
            return
        self.changed += 1
        if len(self.examples_changed) < _MOST_EXAMPLES:
            self.examples_changed.append(Changed(old, new))

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
                "changed_measures": [each.as_json() for each in self.examples_changed],
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
        self._unpaired = Unpaired()

    def add(self, old: ReplayedBatch, new: ReplayedBatch) -> None:
        """Take in the results of a batch."""
        alone = dict(_results(old))
        others = []
        for identity, mine in _results(new):
            other = alone.pop(identity, None)
            if other is None:
                others.append((identity, mine))
            else:
                self._rules[mine.rule].pair(other, mine)
        self._unpaired.add(OLD, alone.items())
        self._unpaired.add(NEW, others)

    def ended(self, records: int) -> CompareReport:
        """The report at the end, after so many records."""
        self._unpaired.end()
        for old, new in self._unpaired.pairs():
            self._rules[new.rule].pair(old, new)
        for rule in self._rules.values():
            rule.only_old, rule.examples_old = self._alone(rule.id, OLD)
            rule.only_new, rule.examples_new = self._alone(rule.id, NEW)
        self._unpaired.close()
        return CompareReport(records, [*self._rules.values()])

    def _alone(self, rule: str, side: int) -> tuple[int, list[Example]]:
        first = self._unpaired.first(rule, side, _MOST_EXAMPLES)
        return self._unpaired.count(rule, side), [*map(Example, first)]


def _results(found: ReplayedBatch) -> Iterator[tuple[str, Compared]]:
    """The results of a batch, each with what is the same for one that both sides find."""
    for match in found.objects.matches:
        yield _compared("match", match, match.time)
    for timeout in found.objects.timeouts:
        yield _compared("timeout", timeout, timeout.deadline)


def _compared(kind: str, result: Match | Timeout, time: int) -> tuple[str, Compared]:
    identity = kind[0] + match_id(result.rule_id, 0, result.key, result.steps)
    events = tuple(
        (name, tuple(event.at for event in taken)) for name, taken in result.steps.items()
    )
    measures = {name: output_value(value) for name, value in result.measures.items()}
    mine = Compared(kind, result.rule_id, result.key, result.start, time, events, measures)
    return identity, mine


def _words(rule: str, old: RuleSet, new: RuleSet) -> Iterator[str]:
    before, after = old.by_id.get(rule), new.by_id.get(rule)
    if before is None:
        yield "it is new"
    elif after is None:
        yield "it is gone"
    else:
        yield from difference(before.rule, after.rule)
