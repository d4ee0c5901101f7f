"""A trial as files, which `spark-cep test` passes, and which open as the same trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_cep.cli.main import app
from spark_cep.errors import ConfigurationError
from spark_cep.play.beginning import beginning
from spark_cep.play.files.given_files import GivenFile
from spark_cep.play.files.opening import opened
from spark_cep.play.files.sharing import shared
from spark_cep.play.trial import RowKind, Trial, TrialRow
from tests.play.trials import NOT, PAIR, SQL, clock, event, trial


def passes(files: Mapping[str, str], folder: Path) -> str:
    """Run the files with `spark-cep test`; what it prints."""
    for name, text in files.items():
        (folder / name).write_text(text)
    result = CliRunner().invoke(app, ["test", str(folder)])
    assert result.exit_code == 0, result.output
    return result.output


def reopened(files: Mapping[str, str]) -> Trial:
    """The trial that the files open as."""
    given = [GivenFile(name, text.encode()) for name, text in files.items()]
    (found,) = opened(given, trial("id: other")).trials
    return found


@pytest.mark.parametrize("given", beginning(), ids=lambda each: each.file)
def test_the_trials_of_the_beginning(given: Trial, tmp_path: Path) -> None:
    """Both can be shared, pass, and open as what they were."""
    files = shared(given)
    assert "1 passed, 0 failed" in passes(files, tmp_path)
    again = reopened(files)
    assert (again.text, again.case) == (given.text, given.case)
    assert [(row.kind, row.at, row.cells) for row in again.rows] == [
        (row.kind, row.at, row.cells) for row in given.rows
    ]
    assert shared(again) == files


def test_all_that_a_case_has(tmp_path: Path) -> None:
    """Rows of each kind, names, and the fields of the case go and come back."""
    given = replace(
        trial(
            PAIR,
            TrialRow(at="0 s", cells={"user": "ann", "kind": "a", "n": "1"}, name="first"),
            TrialRow(RowKind.RESTART),
            TrialRow(at="+5 s", cells={"user": "ann", "kind": "'17'", "tags": "[x, y]"}),
            TrialRow(RowKind.WATERMARK, "10 s"),
            event("7 s", kind="b", n=2),
            clock("3 minutes"),
            TrialRow(RowKind.FINISH),
        ),
        case="all: that's there",
        start=1_700_000_000_000,
        allowed_disorder=2_000,
    )
    files = shared(given)
    assert list(files) == ["pair.yaml"]
    assert "late: [3]" in files["pair.yaml"]
    passes(files, tmp_path)
    again = reopened(files)
    assert again == replace(given, file="pair.yaml", rule="pair", rows=again.rows)
    assert [replace(row, cells=dict(row.cells)) for row in again.rows] == list(given.rows)


def test_cases_that_stand_in_the_text_are_replaced(tmp_path: Path) -> None:
    """A rule has the shared case alone; comments and other rules stay."""
    cases = "cases:\n  - case: old\n    events: [finish]\n    expect: none\n"
    text = f"# two rules\n{PAIR}{cases}description: a pair\n---\n{NOT}# the end\n"
    files = shared(trial(text, event("0 s", kind="a", n=1)))
    (written,) = files.values()
    assert "old" not in written
    assert "# two rules" in written
    assert "# the end" in written
    assert written.count("cases:") == 1
    assert written.index("description: a pair") < written.index("cases:") < written.index("---")
    assert "1 passed" in passes(files, tmp_path)


def test_a_rule_in_braces_is_written_out(tmp_path: Path) -> None:
    """JSON has no lines for cases, so the rule becomes its canonical text."""
    text = '{"id": "one", "pattern": [{"step": "a", "where": "n > 1"}]}'
    files = shared(trial(text, TrialRow(cells={"n": "2"})))
    (written,) = files.values()
    assert written.startswith("id: one")
    assert "1 passed" in passes(files, tmp_path)


def test_what_cannot_be_run_is_not_shared() -> None:
    """The row is named."""
    with pytest.raises(ConfigurationError, match="row 2: `at`"):
        shared(trial(PAIR, event("0 s"), event("soon")))


def test_sql_with_cases_of_its_own(tmp_path: Path) -> None:
    """They stand in the comment at the beginning, and go from there."""
    given = replace(
        trial(SQL, *(event(f"{n} s", n=n) for n in (1, 2, 3)), file="r.sql"), event_time="ts"
    )
    files = shared(given)
    assert "1 passed" in passes(files, tmp_path)
    assert reopened(files).text == SQL
