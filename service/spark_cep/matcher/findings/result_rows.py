"""Rows of ALL ROWS PER MATCH as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_cep.columns.compilation import I32, I64, NONE
from spark_cep.columns.vectors import Bytes
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.findings.named_values import NamedValues
from spark_cep.matcher.findings.results import ResultKind, Results
from spark_cep.model import MatchRow, TakenEvent


@dataclass(frozen=True, slots=True)
class ResultRows:
    """Rows of the results of one rule. ``match`` is the place in ``matches`` of the match that
    covers a row, ``key`` a place in ``keys``, ``number`` the place of the row in its match, from 1,
    ``variable`` a place in the plan's steps (``match`` and ``variable``: ``NONE`` for none).
    ``events`` are those of the rows, ``columns`` the columns of the result."""

    plan: RowPatternPlan
    matches: Results
    keys: Bytes
    names: Names
    match: I64
    key: I64
    number: I64
    variable: I32
    events: EventTable
    columns: NamedValues

    @property
    def kind(self) -> ResultKind:
        """The kind of all of them."""
        return ResultKind.ROW

    def __len__(self) -> int:
        return len(self.match)

    def objects(self) -> Iterator[MatchRow]:
        """All of them as objects."""
        ids = [match.match_id for match in self.matches.objects()]
        for row, match in enumerate(self.match.tolist()):
            yield self.result(row, None if match == NONE else ids[match])

    def result(self, row: int, match_id: str | None) -> MatchRow:
        """One of them as an object; ``match_id``: of the match that covers it."""
        rule, variable = self.plan.rule, int(self.variable[row])
        event = self.events.objects(self.names, ())(row)
        return MatchRow(
            rule_id=rule.id,
            rule_version=rule.version,
            key=self.keys.text(int(self.key[row])),
            match_id=match_id,
            row=int(self.number[row]),
            variable=None if variable == NONE else self.plan.steps[variable],
            event=TakenEvent(event.at, event.time, type=event.type),
            columns=self.columns.row(row),
        )
