"""Rules in SQL, and jobs of them in this process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.model import Match, MatchRow
from spark_cep.pattern.expressions import parse
from spark_cep.pattern.sql import load_query
from spark_cep.pattern.sql.query import Query
from spark_cep.pattern.tree import Rule, Within
from spark_cep.pattern.types import RecordType
from tests.reference.local import LocalJob
from tests.runner.job import RunnerJob


def rule_of(query: Query, rule_id: str = "q", **fields: Any) -> Rule:
    """The rule of a query."""
    return Rule(
        rule_id,
        fields.pop("version", 1),
        events=(query.input,),
        key=tuple(parse(".".join(f"`{part}`" for part in path)) for path in query.partition),
        within=Within(query.within_ms),
        query=query,
        **fields,
    )


def sql_rule(statement: str, event: RecordType | None = None, rule_id: str = "q") -> Rule:
    """The rule of a statement."""
    return rule_of(load_query(statement, "q.sql", event), rule_id)


def job_of(rules: Sequence[Rule], event: RecordType, reads: str = "t") -> LocalJob:
    """A job of rules that read one input."""
    types = RecordTypes(((reads, "Event", event),))
    return LocalJob(compile_rules(rules, types), types)


def result_rows(job: LocalJob | RunnerJob) -> list[tuple[str | None, tuple[Any, ...]]]:
    """What the job's rules have put out: key and columns of the result."""
    found: list[Match | MatchRow] = [*job.outputs.matches, *job.outputs.rows]
    return [
        (each.key, tuple((each.measures if isinstance(each, Match) else each.columns).values()))
        for each in found
    ]
