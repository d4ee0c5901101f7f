"""The output values that users read: matches, rows, timeouts, dead letters, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from spark_cep.matcher.findings.result_rows import ResultRows
from spark_cep.matcher.findings.results import Results
from spark_cep.model import DeadLetter, Event, Match, MatchRow, Timeout
from spark_cep.pattern.tree import Rule


@dataclass(slots=True)
class Outputs:
    """Everything one advance produced; ``counts`` are per (rule id, what). ``results`` are matches,
    rows of rules with ALL ROWS PER MATCH, and timeouts as columns; ``matches``, ``rows`` and
    ``timeouts`` those that were made objects. ``spent``: nanoseconds, of rules that run alone."""

    matches: list[Match] = field(default_factory=list)
    rows: list[MatchRow] = field(default_factory=list)
    timeouts: list[Timeout] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    results: list[Results | ResultRows] = field(default_factory=list)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    spent: Counter[str] = field(default_factory=Counter, compare=False)

    def add(self, more: Outputs) -> None:
        """Append another's."""
        self.matches += more.matches
        self.rows += more.rows
        self.timeouts += more.timeouts
        self.dead_letters += more.dead_letters
        self.results += more.results
        self.counts.update(more.counts)
        self.spent.update(more.spent)

    def as_objects(self) -> Outputs:
        """Return these outputs with all results as objects."""
        found = replace(
            self, matches=[*self.matches], rows=[*self.rows], timeouts=[*self.timeouts], results=[]
        )
        for result in chain.from_iterable(results.objects() for results in self.results):
            match result:
                case Match():
                    found.matches.append(result)
                case MatchRow():
                    found.rows.append(result)
                case Timeout():
                    found.timeouts.append(result)
        return found


class Reporter:
    """Puts together the dead letters of one rule, and counts what is found."""

    def __init__(self, rule: Rule) -> None:
        self._id, self._version = rule.id, rule.version

    def dead_letter(
        self, outputs: Outputs, reason: str, event: Event, detail: str, step: str | None = None
    ) -> None:
        """Append a dead letter of an event."""
        outputs.dead_letters.append(
            DeadLetter(
                at=event.at,
                reason=reason,
                detail=detail,
                record_value=event.payload,
                rule_id=self._id,
                step=step,
                rule_version=self._version,
            )
        )

    def count(self, counted: Mapping[str, int], outputs: Outputs) -> None:
        """Add counts of the rule to ``outputs``."""
        for what, count in counted.items():
            if count:
                outputs.counts[self._id, what] += count
