"""Mistakes that people make in rules and settings: the cause, and what to write instead."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from spark_cep.config import load
from spark_cep.errors import ConfigurationError, Problem
from spark_cep.pattern.document.loading import examine_rules
from spark_cep.pattern.expressions import ExpressionError, check_types, parse
from spark_cep.pattern.types import BOOLEAN, DOUBLE, STRING, TIMESTAMP, RecordType
from tests.config.test_load import MINIMAL

_SPEC = Path(__file__).parents[1] / "spec" / "mistakes.toml"
_CASES: dict[str, list[dict[str, Any]]] = tomllib.loads(_SPEC.read_text("utf-8"))
_EVENT = RecordType({"amount": DOUBLE, "label": STRING, "ts": TIMESTAMP, "flag": BOOLEAN})
_HEAD = "id: r\nkey: k\nwithin: 1 minute\n"


def _cases(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", _CASES[kind], ids=lambda case: str(case["cause"]))


def _check(case: dict[str, Any], problem: Problem) -> None:
    assert problem.message == case["message"]
    assert (problem.allowed or "").startswith(case.get("help", ""))
    assert problem.span is not None
    assert problem.excerpt is not None, "no line is quoted"
    start = problem.span.column - 1
    underlined = problem.excerpt[start : start + problem.span.length]
    assert underlined.strip()
    assert underlined == case.get("underlined", underlined)


@_cases("rule")
def test_in_rules(case: dict[str, Any]) -> None:
    """The first problem is the cause."""
    text = case["text"] if case.get("whole") else _HEAD + case["text"]
    _, problems = examine_rules(text, "rule.yaml")
    _check(case, problems[0])


@_cases("condition")
def test_in_conditions(case: dict[str, Any]) -> None:
    """Against the types of the columns."""
    with pytest.raises(ExpressionError) as refused:
        check_types(parse(case["text"], steps=frozenset({"a"})), _EVENT, {"a": _EVENT})
    (problem,) = refused.value.problems
    assert (problem.message, problem.allowed) == (case["message"], case.get("help"))


@_cases("settings")
def test_in_settings(case: dict[str, Any], tmp_path: Path) -> None:
    """It is the only problem, and its line is quoted."""
    file = tmp_path / "config.yaml"
    file.write_text(MINIMAL.replace(case["old"], case["new"]), "utf-8")
    with pytest.raises(ConfigurationError) as refused:
        load(file, {})
    (problem,) = refused.value.problems
    case = {**case, "message": case["message"].replace("nope", str(tmp_path / "nope"))}
    _check(case, problem)


@pytest.mark.parametrize(
    ("old", "new", "quoted"),
    [
        ("  url:", "  password: [s3cr3t]\n  url:", False),
        ("  url:", "  password:\n    - s3cr3t\n  url:", False),
        ("  url:", "  pasword: s3cr3t\n  url:", False),
        ("  url:", "  pwd: s3cr3t\n  url:", False),
        ("kafka:\n", "kafka:\n  secuirty: {pasword: s3cr3t}\n", False),
        ("  url:", "  pasword: 's3cr3t\n  url:", False),
        ("http://localhost:8081", "http://u:s3cr3t@localhost", False),
        ("http://localhost:8081", "'u:s3cr3t@localhost", False),
        ("  url:", "  password: |\n   s3cr3t: x\n  s3cr3t\n  url:", False),
        ("  url:", "  password: {file: x}\n  {x: s3cr3t\n  url:", True),
    ],
)
def test_a_line_that_may_hold_a_secret_is_not_quoted(
    old: str, new: str, tmp_path: Path, *, quoted: bool
) -> None:
    """Of text that is not YAML none is that stands behind a secret; a reference is none."""
    file = tmp_path / "config.yaml"
    file.write_text(MINIMAL.replace(old, new), "utf-8")
    with pytest.raises(ConfigurationError) as refused:
        load(file, {})
    assert ("s3cr3t" in str(refused.value)) == quoted
