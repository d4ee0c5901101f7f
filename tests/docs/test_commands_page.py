"""docs/commands.md is what the parser says."""

from __future__ import annotations

from pathlib import Path

from spark_cep.cli.reference import render_reference

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_page_is_the_parsers() -> None:
    """`python -m spark_cep.cli.reference > docs/commands.md` writes it again."""
    assert PAGE.read_text("utf-8") == render_reference()
