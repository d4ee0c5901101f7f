"""``explain`` lists the parts of a rule in SQL that Python computes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_cep.cli.main import app

SCHEMA = {
    "type": "record",
    "name": "Tick",
    "fields": [{"name": name, "type": kind} for name, kind in (("k", "string"), ("s", "string"),
                                                               ("v", "long"))],
}  # fmt: skip


def explained(folder: Path, condition: str, *options: str) -> str:
    """The section of a rule whose variable B has this condition."""
    rule = folder / "r.sql"
    rule.write_text(
        "-- id: r\nSELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY k MEASURES v AS v "
        f"PATTERN (A B) WITHIN INTERVAL '1' MINUTE DEFINE A AS v > 1, B AS {condition})",
        "utf-8",
    )
    (folder / "tick.avsc").write_text(json.dumps(SCHEMA), "utf-8")
    told = CliRunner().invoke(app, ["explain", str(rule), *options])
    assert told.exit_code == 0, told.stderr
    return told.stdout.partition("Computed by Python\n")[2].partition("\n\n")[0]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("v > A.v AND v > 3", "  nothing: every condition that looks back is compiled"),
        ("v > A.v AND s > A.s", "  of B  s > RUNNING LAST(A.s)"),
        ("UPPER(A.s) = s", "  of B  UPPER(RUNNING LAST(A.s)) = s"),
    ],
)
def test_parts_of_conditions(tmp_path: Path, condition: str, wanted: str) -> None:
    """With the types known, each part that has no compiled operation."""
    assert explained(tmp_path, condition, "--schema", str(tmp_path / "tick.avsc")) == wanted


def test_without_types(tmp_path: Path) -> None:
    """The types of columns decide."""
    told = explained(tmp_path, "v > A.v")
    assert told == "  that depends on the types of what looks back: give --schema to know"
    assert explained(tmp_path, "v > 3").startswith("  nothing")
