"""One table of output fields: the public schemas, the documentation and any format follow it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spark_cep.codecs.output.fields import RECORDS, Contract, FieldType, Record
from spark_cep.codecs.output.outputs import OutputEncoder
from spark_cep.codecs.output.result_columns import Chosen, FieldColumns
from spark_cep.codecs.output.schemas import schema_text, with_tables
from spark_cep.codecs.output.values import output_value
from spark_cep.columns.vectors import Bytes
from spark_cep.matcher.findings.named_values import NamedValues
from tests.codecs.output.test_outputs import noon
from tests.codecs.output.test_result_columns import (
    EVENT,
    OUTPUT_TOPICS,
    both,
    in_sql,
    plan,
    rows_of_letters,
    stream,
)

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("contract", RECORDS)
def test_schema_is_up_to_date(contract: Contract) -> None:
    """`python -m spark_cep.codecs.output.schemas schemas docs/output.md` writes it."""
    assert (ROOT / "schemas" / f"{contract}.avsc").read_text("utf-8") == schema_text(contract)


def test_tables_are_up_to_date() -> None:
    """The same command writes them; each record has one."""
    page = (ROOT / "docs" / "output.md").read_text("utf-8")
    assert with_tables(page) == page
    for record in ("Match", "StepEvents", "TakenEvent", "MatchRow", "Timeout", "DeadLetter"):
        assert page.count(f"<!-- fields of {record} -->\n\n| field | type | meaning |\n") == 1


@dataclass(frozen=True)
class JsonResults:
    """Another format."""

    def value(self, contract: Contract, result: Any, now: int, origin: str) -> bytes:
        """As the protocol says."""
        assert origin
        return json.dumps(RECORDS[contract].values(result, now)).encode()

    def values(self, contract: Contract, columns: FieldColumns, now: int) -> Bytes:
        """As the protocol says."""
        return Bytes.of(
            [
                json.dumps(self._row(RECORDS[contract], columns, now, row)).encode()
                for row in range(len(columns.row))
            ]
        )

    def _row(self, record: Record, columns: FieldColumns, now: int, row: int) -> dict[str, Any]:
        (steps,) = (each for each in record.fields if isinstance(each.type, Record))
        assert isinstance(steps.type, Record)
        (events,) = (each for each in steps.type.fields if isinstance(each.type, Record))
        assert isinstance(events.type, Record)
        found = self._flat(record, columns, now, row)
        found[steps.name] = []
        first = int(columns.ends[row - 1]) if row else 0
        taken = np.arange(first, columns.ends[row])
        for step in np.unique(columns.step[taken]).tolist():
            mine = taken[columns.step[taken] == step].tolist()
            item = self._flat(steps.type, columns, now, mine[0])
            item[events.name] = [self._flat(events.type, columns, now, each) for each in mine]
            found[steps.name].append(item)
        return found

    @staticmethod
    def _flat(record: Record, columns: FieldColumns, now: int, row: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for field in record.fields:
            if isinstance(field.type, Record):
                continue
            value: Any = now if field.of is None else field.column and field.column(columns)
            if isinstance(value, Chosen):
                number = value.numbers[row]
                value = None if number < 0 else value.texts.text(number)
            elif isinstance(value, np.ndarray):
                value = value[row].item()
            elif isinstance(value, NamedValues):
                value = {name: output_value(each) for name, each in value.row(row).items()}
                if not value and field.type is FieldType.OPTIONAL_VALUES:
                    value = None
            found[field.name] = bool(value) if field.type.value == "boolean" else value
        return found


def test_another_format_needs_the_table_alone() -> None:
    """Its records of columns are those of objects, too: of both engines."""
    encode = OutputEncoder(OUTPUT_TOPICS, JsonResults(), noon)
    as_objects, as_columns, job = both(plan(), stream(300), encode)
    clause = "ORDER BY ts MEASURES LAST(a.v) AS last, k AS k PATTERN (a) DEFINE a AS v = 1"
    of_sql, types = in_sql(clause, EVENT)
    letters = rows_of_letters([{"v": number % 3} for number in range(9)])
    more_objects, more_columns, _ = both(of_sql, letters, encode, types)
    as_objects, as_columns = as_objects + more_objects, as_columns + more_columns
    parsed = [
        [(r.topic, r.key, r.headers, json.loads(r.value or b"")) for r in records]
        for records in (as_objects, as_columns)
    ]
    assert sorted(parsed[0], key=repr) == sorted(parsed[1], key=repr) != []
    assert job.outputs.results
