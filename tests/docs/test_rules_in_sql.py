"""The section on rules in SQL in docs/rules.md: its two rules are one, and fit the demo."""

from __future__ import annotations

import re
from pathlib import Path

from spark_cep.pattern.checks.sql_rule import IN_STATEMENT
from spark_cep.pattern.document.loading import examine_sql_file, load_rules
from spark_cep.pattern.sql_types import check_statement
from spark_cep.pattern.types import record_type

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rules.md").read_text("utf-8")
SCHEMA = ROOT / "examples" / "demo" / "schemas" / "login-event-3.avsc"
SECTION = PAGE.split("\n## Rules in SQL\n")[1].split("\n## ")[0]


def _block(kind: str) -> str:
    (found,) = re.findall(rf"```{kind}\n(.*?)```", SECTION, re.DOTALL)
    return str(found)


def test_both_forms() -> None:
    """The file says what the document says, without a warning."""
    (document,) = load_rules(_block("yaml"), "rules.md")
    (file,), problems = examine_sql_file(_block("sql"), "rules.md")
    assert problems == []
    assert file.rule == document.rule
    assert file.text == document.text
    assert (document.warnings, file.warnings) == ((), ())


def test_it_fits_the_logins_of_the_demo() -> None:
    """Columns and types are those of the demo's schema."""
    (loaded,) = load_rules(_block("yaml"), "rules.md")
    logins = record_type(SCHEMA.read_text("utf-8"))
    assert check_statement(loaded, logins, ("ts",)) == []


def test_fields_beside_a_statement() -> None:
    """The table names all fields that a statement stands for, but those of Ververica's patterns."""
    table = set(re.findall(r"`(\w+)`", "".join(re.findall(r"\n\| (.*?) \|", SECTION))))
    assert {*IN_STATEMENT} - table == {"ververica", "java_classes"}
