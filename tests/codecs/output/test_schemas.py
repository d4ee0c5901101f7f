"""One table of output fields: the public schemas, the documentation and any format follow it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_cep.codecs.output.fields import RECORDS, Contract
from spark_cep.codecs.output.json_results import JsonResults
from spark_cep.codecs.output.outputs import OutputEncoder
from spark_cep.codecs.output.schemas import schema_text, with_tables
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


def test_another_format_needs_the_table_alone() -> None:
    """Its records of columns are those of objects, too: of both engines."""
    encode = OutputEncoder(OUTPUT_TOPICS, JsonResults(), noon)
    as_objects, as_columns, job = both(plan(), stream(300), encode)
    clause = "ORDER BY ts MEASURES LAST(a.v) AS last, k AS k PATTERN (a) DEFINE a AS v = 1"
    of_sql, types = in_sql(clause, EVENT)
    letters = rows_of_letters([{"v": number % 3} for number in range(9)])
    more_objects, more_columns, _ = both(of_sql, letters, encode, types)
    as_objects, as_columns = as_objects + more_objects, as_columns + more_columns
    assert sorted(as_objects, key=repr) == sorted(as_columns, key=repr) != []
    assert all(json.loads(record.value or b"") for record in as_objects)
    assert job.outputs.results
