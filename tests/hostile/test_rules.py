"""The rules of the hostile stream are those that they say they are."""

from __future__ import annotations

import json

import pytest

from spark_cep.cli.authoring.computed_by_python import computed_by_python
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.types import record_type
from tests.e2e import poison
from tests.hostile.stream import rules


@pytest.mark.parametrize(
    ("name", "parts"), [("in-python", 7), ("long-in-python", 2), ("long-in-sql", 0)]
)
def test_conditions_run_in_python(name: str, parts: int) -> None:
    """Each part that looks at other rows, and nothing of the rule next to it."""
    (document,) = (each for each in rules(100) if each["id"] == name)
    (loaded,) = load_rules(json.dumps(document), "rule.yaml")
    (plan,) = compile_rules([loaded.rule]).plans
    assert isinstance(plan, RowPatternPlan)
    types = [("events", "e2e.Event", record_type(json.dumps(poison.EVENT)))]
    lines = computed_by_python(loaded.rule, plan, types).lines
    assert [line for line in lines if line.startswith("  of ")] == [*lines[:parts]]
    assert len(lines) == max(parts, 1)
