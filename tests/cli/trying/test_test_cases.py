"""`spark-cep test`: its output, exit codes, and files for CI."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from typer.testing import CliRunner, Result

from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.main import app
from tests.cases.files import RULE, written

GOOD = """
cases:
  - case: one
    events:
      - {send: {user_id: ann, kind: a, amount: 1}}
      - {send: {user_id: ann, kind: b, amount: 2}, at: 1 s}
    expect: {matches: [{key: ann}]}
  - case: other
    events: []
    expect: none
"""


def run(folder: Path, text: str, *options: str) -> Result:
    """The command on one case file."""
    written(folder, "two.yaml", RULE)
    written(folder, "two.cases.yaml", text)
    return CliRunner().invoke(app, ["test", str(folder), *options])


def test_all_pass(tmp_path: Path) -> None:
    """Each case in a line."""
    result = run(tmp_path, GOOD)
    assert result.exit_code == 0, result.output
    place = tmp_path / "two.cases.yaml"
    assert result.stdout.startswith(
        f"ok      {place}:2: one\nok      {place}:7: other\n2 passed, 0 failed"
    )


def test_one_fails(tmp_path: Path) -> None:
    """The exit code is 1, and JUnit has the difference."""
    file = tmp_path / "junit.xml"
    result = run(tmp_path, GOOD.replace("key: ann", "key: bob"), "--junit", str(file))
    assert result.exit_code == 1
    assert "matches: 1 expected, 1 found" in result.stdout
    assert "1 passed, 1 failed" in result.stdout
    root = ElementTree.parse(file).getroot()  # noqa: S314  of our own making
    (suite,) = root
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
    failed, passed = suite
    assert passed.find("failure") is None
    failure = failed.find("failure")
    assert failure is not None
    assert failure.get("message") == "matches: 1 expected, 1 found"
    assert "≠ ann" in (failure.text or "")


def test_only_some(tmp_path: Path) -> None:
    """`--case` selects by name."""
    result = run(tmp_path, GOOD, "--case", "OTH")
    assert "1 passed, 0 failed" in result.stdout
    result = run(tmp_path, GOOD, "--case", "nothing")
    assert result.exit_code == ExitCode.CONFIGURATION


def test_coverage_and_its_threshold(tmp_path: Path) -> None:
    """What is missing is listed; below the threshold the exit code is 1."""
    result = run(tmp_path, GOOD, "--coverage")
    assert result.exit_code == 0
    assert "coverage\n  two: " in result.stdout
    assert "no case: " in result.stdout
    assert run(tmp_path, GOOD, "--threshold", "10").exit_code == 0
    result = run(tmp_path, GOOD, "--threshold", "99")
    assert result.exit_code == 1
    assert "the threshold is 99 %" in result.stderr


def test_update(tmp_path: Path) -> None:
    """The next run passes."""
    result = run(tmp_path, GOOD.replace("key: ann", "key: bob"), "--update")
    assert result.exit_code == 0
    assert result.stdout == f"{tmp_path / 'two.cases.yaml'}: 1 case accepted\n"
    assert CliRunner().invoke(app, ["test", str(tmp_path)]).exit_code == 0


def test_mistakes(tmp_path: Path) -> None:
    """A mistake in a case has the exit code of settings, one in a rule that of rules."""
    result = run(tmp_path, GOOD.replace("send", "sent"))
    assert result.exit_code == ExitCode.CONFIGURATION
    assert "unknown key `sent`" in result.stderr
    written(tmp_path, "two.yaml", RULE.replace("kind = 'a'", "kind ="))
    written(tmp_path, "two.cases.yaml", GOOD)
    assert CliRunner().invoke(app, ["test", str(tmp_path)]).exit_code == ExitCode.RULES


def test_mistakes_in_several_files(tmp_path: Path) -> None:
    """All are told at once."""
    written(tmp_path, "one.yaml", RULE.replace("two", "one"))
    written(tmp_path, "one.cases.yaml", GOOD.replace("case:", "caze:"))
    result = run(tmp_path, GOOD.replace("send", "sent"))
    assert result.exit_code == ExitCode.CONFIGURATION
    assert "one.cases.yaml:2:" in result.stderr
    assert "two.cases.yaml:4:" in result.stderr
