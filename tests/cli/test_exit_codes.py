"""Exit codes: one for each error, and the table in the documentation."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spark_cep import errors
from spark_cep.cli.exit_codes import ADVICE, ExitCode, exit_code
from spark_cep.errors import SparkCepError

ROOT = Path(__file__).parents[2]


def _all(kind: type[SparkCepError]) -> list[type[SparkCepError]]:
    return [kind, *(found for each in kind.__subclasses__() for found in _all(each))]


def test_every_error_has_its_code() -> None:
    """All of the tree; an error of nobody's is an internal one."""
    codes = {
        kind.__name__: exit_code(kind.__new__(kind))
        for kind in _all(SparkCepError)
        if kind.__module__ == errors.__name__
    }
    assert codes == {
        "SparkCepError": 1,
        "ConfigurationError": 3,
        "RuleSetError": 4,
        "RegistryError": 6,
        "RulesUnavailableError": 5,
        "RulesTopicUnavailableError": 10,
        "RegistryUnavailableError": 11,
        "SchemaNotFoundError": 6,
        "SchemaError": 6,
        "StateError": 7,
        "OutputError": 1,
        "PagesUnavailableError": 1,
        "TakenOverError": 8,
        "StartError": 5,
        "KafkaUnavailableError": 10,
        "GraceError": 12,
        "JavaEndedError": 14,
        "CircuitBreakerError": 9,
    }
    assert exit_code(ZeroDivisionError()) == ExitCode.INTERNAL_ERROR


def test_the_documentation_has_all_codes() -> None:
    """The table in docs/operations/exit-codes.md has each code once, by number and name, in
    order, and the advice of the log's last line."""
    text = (ROOT / "docs/operations/exit-codes.md").read_text("utf-8")
    section = text.partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| .+ \| (.+) \|$", section, re.MULTILINE)
    assert rows == [(str(int(code)), code.name, ADVICE[code]) for code in sorted(ExitCode)]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["run"], ExitCode.USAGE),
        (["run", "--nothing"], ExitCode.USAGE),
        (["run", "--config", "/nowhere/config.yaml"], ExitCode.CONFIGURATION),
        (["check", "/nowhere/rules"], ExitCode.CONFIGURATION),
        (["--version"], ExitCode.DONE),
    ],
)
def test_the_command_ends_with_them(arguments: list[str], code: ExitCode) -> None:
    """By a real process."""
    done = subprocess.run(
        [sys.executable, "-m", "spark_cep.cli.main", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    if arguments[0] == "run":
        # Not on a terminal: JSON and nothing else.
        (line,) = map(json.loads, done.stdout.splitlines())
        assert (line["event"], line["exit_code"]) == ("ended", code)
        assert done.stderr == ""
