"""``spark-cep reset-clock``: its option, its words."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.job.resetting import moment, text
from spark_cep.cli.main import app
from spark_cep.pipeline.driver.commands.reset_clock import SetBack


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("1970-01-01T00:00:01Z", 1_000),
        ("1970-01-01 02:00:00.5+02:00", 500),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_times(given: str, expected: int) -> None:
    """A date and time with its zone."""
    assert moment(given) == expected


@pytest.mark.parametrize("given", ["now", "2026-01-31", "2026-01-31T12:00:00", "12:00Z", ""])
def test_what_is_no_time(given: str) -> None:
    """It is refused before the settings are read."""
    done = CliRunner().invoke(app, ["reset-clock", "--config", "absent.yaml", "--to", given])
    assert done.exit_code == ExitCode.CONFIGURATION
    assert f"--to {given}: must be a date and time with its zone" in done.output


def test_words() -> None:
    """Where the clock stands, and where the next start sets it."""
    hour = 3_600_000
    assert text("c", SetBack(24 * hour, hour, written=True)) == (
        "c: the next start sets the watermark back from 1970-01-02T00:00:00Z to"
        " 1970-01-01T01:00:00Z"
    )
    assert text("c", SetBack(hour, hour, written=False)).endswith(", as said before")
    assert text("c", SetBack(hour, None, written=False)) == (
        "c: the watermark, 1970-01-01T01:00:00Z, is not ahead; nothing to do"
    )
