"""Trino's answers to MATCH_RECOGNIZE, asked of the batch runner.

A case has columns, rows, the text of the clause and of SELECT, and what Trino answers: rows, sorted
by the partition key, or an error, before the query runs or while it does. The rows are given times
in the order of ORDER BY, which need not be that of any time. They arrive one at a time, with the
state written to bytes and read back behind each; the answer must be the same when all of them are
there at once, in the opposite order. The input of each key is closed at the end, as a table is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.errors import RuleSetError
from spark_cep.matcher.findings.partial import END_OF_TIME
from spark_cep.matcher.row_pattern.failures import SkipFault
from spark_cep.model import Coordinates
from spark_cep.pattern.sql import load_query
from spark_cep.pattern.sql.query import Query, Sort
from spark_cep.pattern.types import BIGINT, DOUBLE, STRING, RecordType
from tests.reference.local import Record
from tests.runner.job import RunnerJob
from tests.sql_rules import result_rows, rule_of

Case = Mapping[str, Any]

_TYPES = {"BIGINT": BIGINT, "VARCHAR": STRING, "DOUBLE": DOUBLE}

#: What differs on purpose, by the first of a case's features.
ON_PURPOSE = {
    "aggregate-distinct": "COUNT(DISTINCT …) is allowed here; Trino does not support it",
}


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


def difference(case: Case) -> str | None:
    """How our answer differs from Trino's; ``None`` when it does not."""
    try:
        query = query_of(case)
    except RuleSetError as error:
        return difference_of(case, None, str(error))
    for at_once in (False, True):
        answer = _answer(query, _run(query, case, at_once=at_once))
        found = difference_of(case, answer)
        if found is not None:
            return f"{found} ({'all rows at once' if at_once else 'row by row'})"
    return None


def difference_of(
    case: Case, answer: Mapping[str, Any] | None, refused: str | None = None
) -> str | None:
    """How an answer, or why the case was refused, differs from Trino's; ``None`` when it does
    not."""
    expect = case["expect"]
    analysed = expect.get("stage") != "analysis"
    if refused is not None:
        return f"  expected: {_shown(expect)}\n  refused: {refused}" if analysed else None
    assert answer is not None
    if not analysed:
        return f"  expected: refused: {expect['error']}\n  got: accepted{_purpose(case)}"
    if _shown(answer) != _shown(expect):
        return f"  expected: {_shown(expect)}\n  got:      {_shown(answer)}{_purpose(case)}"
    return None


def _purpose(case: Case) -> str:
    reason = ON_PURPOSE.get(case["features"][0])
    return f" (on purpose: {reason})" if reason else ""


def _run(query: Query, case: Case, *, at_once: bool) -> RunnerJob:
    assert query.event is not None
    types = RecordTypes((("t", "Event", query.event),))
    job = RunnerJob(compile_rules([rule_of(query)], types), types)
    records = list(_records(query, case))
    if at_once:
        job.advance(records[::-1], len(records))
    else:
        for record in records:
            # Rows of its time may follow where there are further columns.
            job.advance([record], record.time - (len(query.order) > 1))
            job.reload()
    job.advance([], END_OF_TIME)
    return job


def _answer(query: Query, job: RunnerJob) -> Mapping[str, Any]:
    failed = [each for each in job.outputs.dead_letters if each.reason == "skip_failed"]
    if failed:
        (fault,) = [each for each in SkipFault if each in failed[0].detail]
        return {"error": str(fault), "stage": "run"}
    columns = [output.name for output in query.outputs]
    rows = [list(row) for _, row in sorted(result_rows(job), key=lambda each: by_key(each[0]))]
    return {"columns": columns, "rows": rows}


def by_key(key: str | None) -> tuple[bool, str]:
    """To sort by the partition key as the answers are: NULL is last."""
    return key is None, key or ""


def _shown(answer: Mapping[str, Any]) -> str:
    if "error" in answer:
        return f"{answer['error']} ({answer['stage']})"
    columns = [name.lower() for name in answer["columns"]]
    return f"{columns} {json.dumps(answer['rows'])}"


def _records(query: Query, case: Case) -> Iterator[Record]:
    """The rows in their order. Those of equal time that further columns order come the other way
    round."""
    rows = list(ranked(query, case))
    times: dict[Any, int] = {}
    for place, row in rows:
        time = place
        if len(query.order) > 1:
            (name,) = query.order[0].path
            time = times.setdefault(row[name], place)
        yield Record(Coordinates("t", 0, len(rows) - place if times else place), time, row, "t")


def ranked(query: Query, case: Case) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows with their places in the order of ORDER BY."""
    rows = [dict(zip(case["columns"], values, strict=True)) for values in case["rows"]]
    for item in reversed(query.order):
        rows.sort(key=partial(_rank, item), reverse=item.descending)
    yield from enumerate(rows)


def _rank(by: Sort, row: Mapping[str, Any]) -> tuple[bool, Any]:
    (name,) = by.path
    value = row[name]
    return ((value is None) != (by.nulls_first != by.descending), 0 if value is None else value)
