"""Trino's answers to MATCH_RECOGNIZE, asked of the row pattern matcher in this process.

A case has columns, rows, the text of the clause and of SELECT, and what Trino answers: rows, sorted
by the partition key, or an error, before the query runs or while it does. The rows are given times
in the order of ORDER BY, which need not be that of any time. They arrive one at a time, with the
state written to bytes and read back behind each; the answer must be the same when all of them are
there at once, in the opposite order. The input of each key is closed at the end, as a table is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from service.compiler.row_pattern import RowPatternPlan, plan_query
from service.errors import RuleSetError
from service.matcher.local import Record
from service.matcher.row_pattern import Result, SkipFailed
from service.matcher.row_pattern.local import LocalRowPattern
from service.matcher.row_pattern.results import rows_of
from service.model import Coordinates
from service.pattern.expressions import ColumnPath
from service.pattern.sql import load_query
from service.pattern.sql.query import Query, Sort
from service.pattern.types import BIGINT, DOUBLE, STRING, RecordType
from tests.conformance.compiled_row_pattern import CompiledLocalRowPattern

Case = Mapping[str, Any]

_TYPES = {"BIGINT": BIGINT, "VARCHAR": STRING, "DOUBLE": DOUBLE}

#: What differs on purpose, by the first of a case's features.
ON_PURPOSE = {"aggregate-distinct": "COUNT(DISTINCT …) is allowed here; Trino does not support it"}


def is_case(case: Case) -> bool:
    """Whether a case is of this kind."""
    return "match_recognize" in case


def statement(case: Case) -> str:
    """The whole statement."""
    return f"SELECT {case['select']} FROM t MATCH_RECOGNIZE ({case['match_recognize']}) AS m"


def query_of(case: Case) -> Query:
    """The case's query; ``RuleSetError`` where it is refused."""
    columns = {name: _TYPES[kind] for name, kind in case["columns"].items()}
    return load_query(statement(case), case["id"], RecordType(columns))


def difference(case: Case, *, compiled: bool = False) -> str | None:
    """How our answer differs from Trino's; ``None`` when it does not. ``compiled``: that of the
    compiled matcher."""
    expect = case["expect"]
    try:
        query = query_of(case)
    except RuleSetError as error:
        if expect.get("stage") == "analysis":
            return None
        return f"  expected: {_shown(expect)}\n  refused: {error}"
    if expect.get("stage") == "analysis":
        reason = ON_PURPOSE.get(case["features"][0])
        purpose = f" (on purpose: {reason})" if reason else ""
        return f"  expected: refused: {expect['error']}\n  got: accepted{purpose}"
    plan = plan_query(query)
    for at_once in (False, True):
        job = CompiledLocalRowPattern(plan) if compiled else LocalRowPattern(plan)
        results = _results(job, case, at_once=at_once)
        got = _answer(plan, results)
        if _shown(got) != _shown(expect):
            cut = "all rows at once" if at_once else "row by row"
            return f"  expected: {_shown(expect)}\n  got:      {_shown(got)} ({cut})"
    return None


def _results(
    job: LocalRowPattern | CompiledLocalRowPattern, case: Case, *, at_once: bool
) -> list[Result]:
    records = list(_records(job.plan.query, case))
    if at_once:
        job.advance(records[::-1], len(records))
    else:
        for record in records:
            job.advance([record], record.time)
            job.reload()
    job.close()
    keys = sorted(job.results, key=lambda key: [(value is None, value or "") for value in key])
    return [result for key in keys for result in job.results[key]]


def _answer(plan: RowPatternPlan, results: Sequence[Result]) -> Mapping[str, Any]:
    failed = next((each for each in results if isinstance(each, SkipFailed)), None)
    if failed is not None:
        return {"error": str(failed.fault), "stage": "run"}
    columns = [output.name for output in plan.query.outputs]
    return {"columns": columns, "rows": rows_of(plan, results)}


def _shown(answer: Mapping[str, Any]) -> str:
    if "error" in answer:
        return f"{answer['error']} ({answer['stage']})"
    columns = [name.lower() for name in answer["columns"]]
    return f"{columns} {json.dumps(answer['rows'])}"


def _records(query: Query, case: Case) -> Iterator[Record]:
    rows = [dict(zip(case["columns"], values, strict=True)) for values in case["rows"]]
    for item in reversed(query.order):
        rows.sort(key=lambda row, by=item: _rank(_value(row, by.path), by), reverse=item.descending)
    for time, row in enumerate(rows):
        yield Record(Coordinates("t", 0, time), time, row)


def _value(row: Mapping[str, Any], path: ColumnPath) -> Any:
    (name,) = path
    return row[name]


def _rank(value: Any, by: Sort) -> tuple[bool, Any]:
    return ((value is None) != (by.nulls_first != by.descending), 0 if value is None else value)
