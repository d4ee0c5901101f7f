"""The pages on MATCH_RECOGNIZE show what the code does."""

from __future__ import annotations

import pathlib
import re

import pytest
from typer.testing import CliRunner

from spark_cep.cli.main import app
from spark_cep.compiler.row_pattern import plan_query
from spark_cep.pattern.sql import endless_parts, load_query, order_problems, stream_warnings

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "match-recognize.md").read_text("utf-8")
INTERNALS = (DOCS / "match-recognize" / "internals.md").read_text("utf-8")


def _block(behind: str, kind: str = "", page: str = PAGE) -> str:
    found = re.search(rf"{re.escape(behind)}.*?```{kind}\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


def test_example() -> None:
    """The statement is right, and a stream can run it."""
    query = load_query(_block("# MATCH_RECOGNIZE", "sql"), "example.sql")
    assert [each.name for each in query.outputs] == ["account", "first_failure", "attempts"]
    assert endless_parts(query) == list(order_problems(query, ("login_time",))) == []
    assert stream_warnings(query) == []


def test_program() -> None:
    """The listing is that of the pattern."""
    text = (
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k PATTERN (A {- B+? -} (C | D)*) "
        "DEFINE A AS TRUE)"
    )
    program = plan_query(load_query(text, "p.sql")).program
    listing = _block("`PATTERN (A {- B+? -} (C | D)*)` becomes", page=INTERNALS)
    assert str(program) == listing.strip()


def test_mistakes(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command tells of the mistakes so."""
    monkeypatch.chdir(tmp_path)
    rule = """-- id: ticks
SELECT *
FROM ticks MATCH_RECOGNIZE (
  PARTITION BY symbol
  MEASURES LAST(PREV(price)) AS low, COUNT(dwn.*) AS falls
  PATTERN (start_ down+ up)
  DEFINE down AS price < PREV(price), up AS price > PREV(price)
)
"""
    pathlib.Path("ticks.sql").write_text(rule, "utf-8")
    told = CliRunner().invoke(app, ["check", "ticks.sql"])
    assert told.exit_code != 0
    assert _block("## Check and explain", r"\n\$ spark-cep check ticks\.sql") == told.stderr


def test_a_rule_is_explained_and_tested(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule file of the page is explained as it says, and its test passes."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path("brute-force.sql").write_text(_block("## Write a rule", "sql"), "utf-8")
    told = CliRunner().invoke(app, ["explain", "brute-force.sql"])
    assert told.exit_code == 0, told.stderr
    command = "$ spark-cep explain brute-force.sql"
    assert _block("## Check and explain", f"\n{re.escape(command)}") == told.stdout
    exec(compile(_block("## Test a rule", "python"), "page", "exec"), {})  # noqa: S102  our own page
