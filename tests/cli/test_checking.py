"""What ``spark-cep check`` says of rules by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_cep.cli.checking import check_rules

STATEMENT = """-- id: r
SELECT * FROM logins MATCH_RECOGNIZE (
  PARTITION BY account MEASURES {measure} AS m PATTERN ({pattern}) {within}
  DEFINE a AS v = 1, b AS v = 2{more}
)"""


def checked(
    folder: Path, pattern: str, within: str = "", more: str = "", measure: str = "a.v"
) -> list[tuple[str, str | None]]:
    """What is said against a rule."""
    file = folder / "r.sql"
    text = STATEMENT.format(pattern=pattern, within=within, more=more, measure=measure)
    file.write_text(text, encoding="utf-8")
    report = check_rules([file], None, ())
    return [(each.message, each.allowed) for each in report.problems]


@pytest.mark.parametrize("pattern", ["a b $", "a x* b"])
def test_what_a_continuous_job_refuses(tmp_path: Path, pattern: str) -> None:
    """It is refused, and told where it can run."""
    ((_, allowed),) = checked(tmp_path, pattern)
    assert allowed is not None
    assert allowed.endswith(
        "or --config of a job whose input ends (trigger.at_end_of_input: decide)"
    )


def test_what_settles_it(tmp_path: Path) -> None:
    """As the job says."""
    assert checked(tmp_path, "a x* b", within="WITHIN INTERVAL '1' HOUR") == []
    assert checked(tmp_path, "a x* b", more=", x AS v = 3") == []


def test_a_condition_that_is_wrong(tmp_path: Path) -> None:
    """It is told, and not taken for none."""
    ((message, _),) = checked(tmp_path, "a x* b", more=", x AS v = ")
    assert "loop" not in message
    assert "takes any row" not in message
