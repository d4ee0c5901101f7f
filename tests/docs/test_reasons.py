"""The table of dead letters in docs/output.md is the list of reasons.

``python -m tests.docs.test_reasons`` prints the table.
"""

from __future__ import annotations

import sys
from pathlib import Path

from spark_cep.codecs.output.dead_letters import Reason

PAGE = Path(__file__).parents[2] / "docs" / "output.md"


def table() -> str:
    """The reasons as a table in Markdown, in their own order."""
    rows = [f"| `{reason.value}` | {reason.meaning} |" for reason in Reason]
    return "\n".join(["| reason | meaning |", "| --- | --- |", *rows]) + "\n"


def test_table_of_reasons_is_up_to_date() -> None:
    """docs/output.md has exactly one table of reasons, and it is the one made from the code."""
    page = PAGE.read_text("utf-8")
    assert page.count("| reason | meaning |") == 1
    assert table() + "\n" in page


if __name__ == "__main__":
    sys.stdout.write(table())
