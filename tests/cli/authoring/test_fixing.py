"""``spark-cep check --fix``: after it the code is gone, and nothing else has changed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spark_cep.cli.main import app

SCHEMA = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "user_id", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "paid", "type": "boolean"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["CARD", "CASH_IN"]}},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    ],
}
RULE = """# One that is kept: kind = NULL
id: r
key: user_id
pattern:
  - step: a
    where: {where}   # kept, too
within: 1 hour
after_match: skip_past_last_event
"""
STATEMENT = """-- id: s
SELECT * FROM payments MATCH_RECOGNIZE (
  PARTITION BY user_id MEASURES a.amount AS m PATTERN (a)
  DEFINE a AS {where} AND amount > 1 -- kept
)
"""
FIXED = [
    ("kind = NULL", "kind IS NULL"),
    ("NULL <> kind", "kind IS NOT NULL"),
    ("COALESCE(kind, 'x') = NULL", "COALESCE(kind, 'x') IS NULL"),
    ("amount > '10.5'", "amount > 10.5"),
    ("NOT '10' < amount", "NOT 10 < amount"),
    ("paid = 'true'", "paid = true"),
    ("amount IN ('1', '2', 3)", "amount IN (1, 2, 3)"),
    ("kind = 'card'", "kind = 'CARD'"),
    ("kind <> 'CASHIN'", "kind <> 'CASH_IN'"),
    ("ts > '2026-01-31 12:00:00'", "ts > TIMESTAMP '2026-01-31 12:00:00'"),
    ("day = '2026-01-31'", "day = DATE '2026-01-31'"),
    ("day BETWEEN DATE '2026-02-01' AND DATE '2026-01-01'",
     "day BETWEEN DATE '2026-01-01' AND DATE '2026-02-01'"),
    ("amount > 1 && amount < 3", "amount > 1 AND amount < 3"),
    ("amount > 1,5", "amount > 1.5"),
    ("ts - TIMESTAMP '2026-01-31' < 10 minutes",
     "ts - TIMESTAMP '2026-01-31' < INTERVAL 10 MINUTES"),
    ("paid = 'true' AND kind = 'card'", "paid = true AND kind = 'CARD'"),
]  # fmt: skip
#: What is meant there is not certain: conditions with a warning, and those that are refused.
LEFT = [
    [
        "HOUR(ts) BETWEEN 22 AND 6",
        "amount BETWEEN 10 AND -10",
        "kind = 'C'",
        "kind = 'CHECK'",
    ],
    [
        "amount = 'many'",
        "paid = 'yes'",
        "ts > 'yesterday'",
        "user_id = 5",
        "paid & paid",
        "1 < amount < 3",
        "amount > 1,000",
        "amount > 1,000,000",
    ],
]


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    """The schema of the events."""
    file = tmp_path / "payment.avsc"
    file.write_text(json.dumps(SCHEMA), "utf-8")
    return file


def fix(file: Path, schema: Path) -> Result:
    """Run the command."""
    arguments = ["check", str(file), "--schema", str(schema), "--strict", "--fix"]
    return CliRunner().invoke(app, arguments)


def written(condition: str, style: str) -> str:
    """A condition as a scalar in a style of YAML."""
    match style:
        case "'":
            return "'" + condition.replace("'", "''") + "'"
        case '"':
            return f'"{condition}"'
        case "|":
            return f"|\n      {condition}"
    return condition


def rules(conditions: list[str], style: str) -> str:
    """A rule for each condition."""
    comment = "   # kept, too" if style == "|" else "no such text"
    text = RULE.replace(comment, "")
    return "---\n".join(
        text.replace("id: r", f"id: r{number}").format(where=written(condition, style))
        for number, condition in enumerate(conditions)
    )


@pytest.mark.parametrize("style", ["plain", "'", '"', "|"])
def test_conditions(tmp_path: Path, schema: Path, style: str) -> None:
    """In each style of YAML."""
    file = tmp_path / "r.yaml"
    before, after = map(list, zip(*FIXED, strict=True))
    file.write_text(rules(before, style), "utf-8")
    result = fix(file, schema)
    assert file.read_text("utf-8") == rules(after, style)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith("fixed ")


def test_statements(tmp_path: Path, schema: Path) -> None:
    """In a statement, too, but for a comma, which begins the next variable there."""
    folder = tmp_path / "rules"
    folder.mkdir()
    fixable = [(before, after) for before, after in FIXED if before != "amount > 1,5"]
    for number, (before, _) in enumerate(fixable):
        text = STATEMENT.replace("id: s", f"id: s{number}").format(where=before)
        (folder / f"{number}.sql").write_text(text, "utf-8")
    result = fix(folder, schema)
    for number, (_, after) in enumerate(fixable):
        text = STATEMENT.replace("id: s", f"id: s{number}").format(where=after)
        assert (folder / f"{number}.sql").read_text("utf-8") == text
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("conditions", LEFT)
def test_what_is_not_certain_is_left(tmp_path: Path, schema: Path, conditions: list[str]) -> None:
    """It is told, and stays."""
    file = tmp_path / "r.yaml"
    file.write_text(rules(conditions, "plain"), "utf-8")
    result = fix(file, schema)
    assert result.exit_code == 4
    assert file.read_text("utf-8") == rules(conditions, "plain")
    told = set(re.findall(r"\[rule r(\d+)\]", result.stderr))
    assert told == {str(number) for number in range(len(conditions))}


def test_greedy_without_effect(tmp_path: Path, schema: Path) -> None:
    """It is switched off."""
    file = tmp_path / "r.yaml"
    text = RULE.format(where="amount > 1\n    times: 2+\n    greedy: {greedy}")
    file.write_text(text.format(greedy="true"), "utf-8")
    assert fix(file, schema).exit_code == 0
    assert file.read_text("utf-8") == text.format(greedy="false")


def test_a_misspelt_code(tmp_path: Path, schema: Path) -> None:
    """The comment allows what it names, and what it is meant to allow is not there."""
    file = tmp_path / "r.yaml"
    comment = "# spark-cep: allow {} because there is one machine\n"
    text = RULE.format(where="amount > 1").replace("key: user_id\n", "")
    file.write_text(comment.format("no-keys") + text, "utf-8")
    assert fix(file, schema).exit_code == 0
    assert file.read_text("utf-8") == comment.format("no-key") + text


@pytest.mark.parametrize(
    "where",
    [
        # Over several lines, folded, or where the fix has signs that the text does not have.
        ">\n      kind\n      = NULL",
        "kind =\n      NULL",
        "|\n      kind =\n      NULL",
    ],
)
def test_texts_over_several_lines_are_left(tmp_path: Path, schema: Path, where: str) -> None:
    """The place of a part of them is not sure."""
    file = tmp_path / "r.yaml"
    text = RULE.replace("   # kept, too", "").format(where=where)
    file.write_text(text, "utf-8")
    assert fix(file, schema).exit_code == 4
    assert file.read_text("utf-8") == text


def test_signs_that_end_text_without_quotes(tmp_path: Path, schema: Path) -> None:
    """Text in brackets has no commas of its own."""
    file = tmp_path / "r.yaml"
    text = "id: r\nkey: user_id\npattern: [{step: a, where: {}}]\n"
    file.write_text(text.replace("{}", "kind = NULL"), "utf-8")
    assert fix(file, schema).exit_code == 0
    assert file.read_text("utf-8") == text.replace("{}", "kind IS NULL")
