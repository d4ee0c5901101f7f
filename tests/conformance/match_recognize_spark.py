"""Trino's answers to MATCH_RECOGNIZE, asked of the whole job: Kafka, registry and Spark.

All cases share a topic and a query. Each is a rule of its own. The case is a part of the key, and
rows have their place in the order of ORDER BY as event time: the clauses are changed accordingly,
``PARTITION BY k ORDER BY ts`` to ``PARTITION BY case_id, k ORDER BY rank_``. Every rule sees the
rows of all cases; what it finds of others is passed over. The input comes in several batches, and
ends, as a table does.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from service.errors import RuleSetError
from service.matcher.row_pattern.results import SkipFault
from service.pattern.sql.syntax import read_statement
from tests.conformance.match_recognize import Case, difference_of, query_of, ranked, statement
from tests.e2e.outputs import Record
from tests.e2e.scenario import Scenario
from tests.e2e.schemas import record
from tests.kafka_access import Sent

_TYPES = {"BIGINT": "long", "VARCHAR": "string", "DOUBLE": "double"}
_CASE, _RANK = "case_id", "rank_"
_BEHIND_ORDER = re.compile(r"\b(MEASURES|ONE ROW|ALL ROWS|AFTER MATCH|PATTERN)\b")
_ORDER = re.compile(rf"ORDER BY .*?(?=\s+{_BEHIND_ORDER.pattern})", re.DOTALL)
_RECORDS_PER_BATCH = 2_000


def differences(
    given: Sequence[Case], new_job: Callable[[], Scenario]
) -> Iterator[tuple[Case, str]]:
    """The cases in which the job's answer differs from Trino's, and how."""
    accepted = {}
    for number, case in enumerate(given):
        try:
            query_of(case)
        except RuleSetError as error:
            found = difference_of(case, None, str(error))
            if found is not None:
                yield case, found
        else:
            accepted[number] = case
    written = _run(accepted, new_job())
    for number, case in accepted.items():
        found = difference_of(case, _answer(case, written[number]), None)
        if found is not None:
            yield case, found


def _run(cases: Mapping[int, Case], scenario: Scenario) -> Mapping[int, list[Record]]:
    """What each rule has found of its own case, in its order."""
    columns: dict[str, str] = {}
    for case in cases.values():
        columns |= case["columns"]
    scenario.input("t", event_time=_RANK, event_time_unit="millis")
    types = {name: ["null", _TYPES[kind]] for name, kind in columns.items()}
    schema = scenario.register(
        "t", record("conformance.Row", **{_CASE: "int", _RANK: "long"}, **types)
    )
    nothing = dict.fromkeys(columns)
    rows = [
        (rank, {_CASE: number, _RANK: rank, **nothing, **row})
        for number, case in cases.items()
        for rank, row in ranked(query_of(case), case)
    ]
    rows.sort(key=lambda each: each[0])
    scenario.send("t", *(Sent(scenario.avro(schema, row)) for _, row in rows))
    for number, case in cases.items():
        scenario.rule({"id": f"case-{number}", "sql": _of_case(statement(case))})
    outputs = scenario.decide(
        rules={"max_rules": len(cases)},
        limits={"records_per_batch": _RECORDS_PER_BATCH},
        state={"key_groups": 8, "bucket_size": "4 KiB", "state_partitions": 2},
    )
    found: dict[int, list[Record]] = defaultdict(list)
    for written in (*outputs.matches, *outputs.match_rows):
        if _key(written)[0] == _number(written):
            found[int(_number(written))].append(written)
    for written in outputs.dead_letters:
        row = rows[written.body["offset"]][1]
        if written.body["rule_id"] is not None and str(row[_CASE]) == _number(written):
            found[int(_number(written))].append(written)
    return found


def _number(written: Record) -> str:
    return str(written.body["rule_id"]).removeprefix("case-")


def _of_case(text: str) -> str:
    """The statement with the case in its key, in the order of ranks."""
    read, _ = read_statement(text, "case")
    assert read is not None
    text = _ORDER.sub("", text, 1) if read.order else text
    if read.partition:
        start = read.partition[0].span[0]
        text = f"{text[:start]}{_CASE}, {text[start:]}"
    else:
        start = text.index("MATCH_RECOGNIZE (") + len("MATCH_RECOGNIZE (")
        text = f"{text[:start]} PARTITION BY {_CASE} {text[start:]}"
    behind = _BEHIND_ORDER.search(text, start)
    assert behind is not None
    return f"{text[: behind.start()]} ORDER BY {_RANK} {text[behind.start() :]}"


def _key(written: Record) -> list[str]:
    key = written.body["key"]
    parts = json.loads(key) if key.startswith("[") else [key]
    return [str(part) for part in parts]


def _answer(case: Case, written: Sequence[Record]) -> Mapping[str, Any]:
    failed = [each.body["detail"] for each in written if each.body.get("reason") == "skip_failed"]
    if failed:
        (fault,) = [each for each in SkipFault if each in failed[0]]
        return {"error": str(fault), "stage": "run"}
    names = [output.name for output in query_of(case).outputs]
    rows = []
    for each in sorted(written, key=_key):
        values = each.body["measures"] if "measures" in each.body else each.body["columns"]
        rows.append([values[name] for name in names])
    return {"columns": names, "rows": rows}
