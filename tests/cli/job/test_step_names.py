"""Names of steps in what ``spark-cep state`` shows: those of the rules that the settings name."""

from __future__ import annotations

from pathlib import Path

from spark_cep.cli.job.state_text import plans_of
from tests.rules.sources.test_folder import rule
from tests.rules.stores import SqliteStore, settings


def test_steps_of_any_source(tmp_path: Path) -> None:
    """Of a table as of a folder; a source that cannot be read has none."""
    table = SqliteStore(tmp_path / "rules.db")
    table.put("r", rule("r"))
    given = settings(**table.given)
    assert [plan.steps for plan in plans_of(given).values()] == [("a",)]
    table.away()
    assert plans_of(given) == {}
