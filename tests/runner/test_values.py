"""Records of Python values: their columns are those that the same records have in Avro, or have the
types of their values."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.types import BIGINT, STRING, RecordType
from spark_cep.runner.batch import Batch, RunSettings
from spark_cep.runner.runner import Runner
from spark_cep.runner.values import ValueInputs, ValueRecord, records_of

EVENT = RecordType({"id": BIGINT, "who": RecordType({"name": STRING})})
SETTINGS = RunSettings(key_groups=1)


def measured(expression: str, *events: Any, types: RecordTypes | None = None) -> Any:
    """A measure over all events, which match one after the other."""
    rule = f"""{{id: r, pattern: [{{step: a, where: "{expression} IS NOT NULL"}}],
      emit: {{measures: {{m: "LAST(a.{expression})"}}}}}}"""
    inputs = ValueInputs(types or RecordTypes())
    number = inputs.number("", None)
    loaded = load_rules(rule, "r")
    runner = Runner(compile_rules([loaded[0].rule], inputs.types), inputs, SETTINGS)
    records = [
        ValueRecord.of(Coordinates("t", 0, n), number, n * 1_000, each)
        for n, each in enumerate(events)
    ]
    results = runner.apply(Batch(records_of(records), watermark=1_000))
    return [match.measures["m"] for match in results.outputs.matches]


VALUES: list[Any] = [
    5, 1 << 70, 2.5, "text", "", True, b"\0\xff", Decimal("1.50"), date(2026, 1, 2),
    datetime(2026, 1, 2, 3, 4, 5, 6, UTC), datetime(2026, 1, 2), [1, [2]], {"a": {"b": None}},
]  # fmt: skip


def test_without_types_values_come_back_as_they_are() -> None:
    """Of any type that an expression may have, one behind the other in the same column."""
    events: list[dict[str, Any]] = [*({"id": value} for value in VALUES), {"id": None}, {}]
    found = measured("id", *events)
    assert [(type(each), each) for each in found] == [(type(each), each) for each in VALUES]


@pytest.mark.parametrize("types", [None, RecordTypes((("", "Event", EVENT),))])
def test_columns_of_records(types: RecordTypes | None) -> None:
    """A column in a record, where the record is there; with types and without."""
    events: list[dict[str, Any]] = [
        {"who": {"name": "ann"}},
        {"who": None},
        {},
        {"who": {"name": None}},
    ]
    assert measured("who.name", *events, types=types) == ["ann"]


def test_a_record_and_a_column_in_it() -> None:
    """Without types, when rules read both."""
    inputs = ValueInputs()
    number = inputs.number("", None)
    rule = """{id: r, pattern: [{step: a, where: "who.name = 'ann' AND who IS NOT NULL"}]}"""
    runner = Runner(compile_rules([load_rules(rule, "r")[0].rule]), inputs, SETTINGS)
    event = ValueRecord.of(Coordinates("t", 0, 0), number, 0, {"who": {"name": "ann"}})
    assert len(runner.apply(Batch(records_of([event]), watermark=0)).outputs.matches) == 1


def test_a_value_of_no_type_is_refused() -> None:
    """When the record is made."""
    with pytest.raises(ValueError, match=r"\{'x': <object .*has a value that is no column's"):
        ValueRecord.of(Coordinates("t", 0, 0), 0, 0, {"x": object()})


def test_a_type_that_is_new_is_read_once_the_runner_knows_it() -> None:
    """State goes on; the condition's record type is the event's own."""
    inputs = ValueInputs()
    rule = """{id: r, pattern: [{step: a, where: 'true'},
      {step: b, of_type: Out, after: followed_by, where: 'true'}]}"""
    plan = compile_rules([load_rules(rule, "r")[0].rule])
    runner = Runner(plan, inputs, SETTINGS)
    found = []
    for time, name in enumerate(("com.In", "com.Out")):
        number = inputs.number("", name)
        runner.use(plan, inputs)
        event = ValueRecord.of(Coordinates("t", 0, time), number, time * 1_000, {})
        found += runner.apply(Batch(records_of([event]), watermark=time)).outputs.matches
    assert [[e.type for e in found[0].steps[step]] for step in "ab"] == [["com.In"], ["com.Out"]]


def test_runner_and_test_kit_import_no_pyspark() -> None:
    """Nor what a start of the service needs."""
    script = (
        "import sys, spark_cep.testkit, spark_cep.runner.runner;"
        "print(sorted({'pyspark', 'pandas', 'prometheus_client', 'sqlalchemy'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", script]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
