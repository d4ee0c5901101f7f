"""Trino's answers to MATCH_RECOGNIZE, asked of the whole job: Kafka, registry and Spark.

All cases share a query, and those with the same columns a topic. Each is a rule of its own. The
case is a part of the key, and rows have their place in the order of ORDER BY as event time: the
clauses are changed accordingly,
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

from spark_cep.errors import RuleSetError
from spark_cep.matcher.row_pattern.failures import SkipFault
from spark_cep.pattern.sql.syntax import read_statement
from tests.conformance.match_recognize import (
    Case,
    by_key,
    difference_of,
    query_of,
    ranked,
    statement,
)
from tests.e2e.outputs import Record
from tests.e2e.scenario import Scenario
from tests.e2e.schemas import record
from tests.kafka_access import Sent

_TYPES = {"BIGINT": "long", "VARCHAR": "string", "DOUBLE": "double"}
_CASE, _RANK = "case_id", "rank_"
_BEHIND_ORDER = re.compile(r"\b(MEASURES|ONE ROW|ALL ROWS|AFTER MATCH|PATTERN)\b", re.IGNORECASE)
_ORDER = re.compile(rf"ORDER BY .*?(?=\s+{_BEHIND_ORDER.pattern})", re.DOTALL | re.IGNORECASE)
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
    inputs: dict[str, str] = {}
    sent: dict[str, list[int]] = {}
    for columns, numbers in _by_columns(cases).items():
        name = inputs[columns] = f"t{len(inputs)}"
        topic = scenario.input(name, event_time=_RANK, event_time_unit="millis")
        types = {column: ["null", _TYPES[kind]] for column, kind in json.loads(columns)}
        schema = scenario.register(
            name, record(f"conformance.Row_{name}", **{_CASE: "int", _RANK: "long"}, **types)
        )
        rows = [
            (rank, number, row)
            for number in numbers
            for rank, row in ranked(query_of(cases[number]), cases[number])
        ]
        rows.sort(key=lambda each: each[0])
        sent[topic] = [number for _, number, _ in rows]
        values = ({_CASE: number, _RANK: rank, **row} for rank, number, row in rows)
        scenario.send(name, *(Sent(scenario.avro(schema, value)) for value in values))
        for number in numbers:
            text = _of_case(statement(cases[number]), name)
            scenario.rule({"id": f"case-{number}", "sql": text})
    outputs = scenario.decide(
        rules={"max_rules": len(cases)},
        source={"max_offsets_per_trigger": _RECORDS_PER_BATCH},
        state={"bucket_size": "4 KiB", "state_partitions": 2},
    )
    found: dict[int, list[Record]] = defaultdict(list)
    for written in (*outputs.matches, *outputs.match_rows):
        if _key(written)[0] == _number(written):
            found[int(_number(written))].append(written)
    for written in outputs.dead_letters:
        number = sent[written.body["topic"]][written.body["offset"]]
        if written.body["rule_id"] is not None and str(number) == _number(written):
            found[number].append(written)
    return found


def _by_columns(cases: Mapping[int, Case]) -> Mapping[str, list[int]]:
    """The cases by the columns of their rows."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, case in cases.items():
        found[json.dumps(list(case["columns"].items()))].append(number)
    return found


def _number(written: Record) -> str:
    return str(written.body["rule_id"]).removeprefix("case-")


def _of_case(text: str, name: str) -> str:
    """The statement with the case in its key, over the input ``name``, in the order of ranks."""
    text = text.replace("FROM t ", f"FROM {name} ", 1)
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


def _key(written: Record) -> list[str | None]:
    key = written.body["key"]
    return json.loads(key) if key.startswith("[") else [key]


def _answer(case: Case, written: Sequence[Record]) -> Mapping[str, Any]:
    failed = [each.body for each in written if "reason" in each.body]
    if failed:
        faults = [str(each) for each in SkipFault if each in failed[0]["detail"]]
        return {"error": (faults or [failed[0]["detail"]])[0], "stage": "run"}
    names = [output.name for output in query_of(case).outputs]
    rows = []
    for each in sorted(written, key=lambda each: [*map(by_key, _key(each))]):
        values = each.body["measures"] if "measures" in each.body else each.body["columns"]
        rows.append([values[name] for name in names])
    return {"columns": names, "rows": rows}
