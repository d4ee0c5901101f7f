"""What is wrong in a case file is told with its place and what is right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_cep.cases.document.files import suites
from spark_cep.cases.document.schema import write_schema
from spark_cep.errors import ConfigurationError
from spark_cep.rules.sources.folder import read_rules
from tests.cases.files import read, written

SCHEMA_FILE = Path(__file__).parents[3] / "schemas" / "cases.schema.json"
GOOD = """
    cases:
      - case: one
        events:
          - {send: {user_id: ann}, name: first, at: 1 s}
        expect: {matches: none, late: []}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "message", "help_"),
    [
        ("at: 1 s", "at: 1", "`at`: `1` is not a time: its unit is missing", "`90 s`"),
        ("at: 1 s", "after: 1 s", "unknown key `after`", "keys here: send, at, name"),
        ("send: {user_id: ann}, ", "", "exactly one of `send`, `clock` and `watermark`", ""),
        ("at: 1 s", "every: 1 s", "`times` is missing", ""),
        ("at: 1 s", "clock: 1 s", "exactly one of", ""),
        ("late: []", "late: [frist]", "there is no event `frist`", "did you mean `first`?"),
        ("late: []", "late: [2]", "there is no event 2", "by number 1 to 1"),
        ("matches: none", "matches: [{at: soon}]", "`at`: `soon` is not a time", ""),
        ("matches: none", "matches: one", "`matches` cannot be `one`", "`none`"),
        (
            "matches: none",
            "matches: [{steps: {aa: 1}}]",
            "there is no step `aa`",
            "mean `a`?",
        ),
        ("matches: none", "matches: [{rule: three}]", "there is no rule `three`", "two"),
        ("case: one", "name: one", "unknown key `name`", "`case` for the case's name"),
        ("cases:", "tests:", "unknown key `tests`", "`cases` for the list of cases"),
        ("- case: one", "- case: one\n        rule: twö", "there is no rule `twö`", "two"),
    ],
)
def test_mistakes(tmp_path: Path, right: str, wrong: str, message: str, help_: str) -> None:
    """Each names the line, underlines the place, and helps."""
    with pytest.raises(ConfigurationError) as raised:
        read(tmp_path, GOOD.replace(right, wrong))
    told = "\n".join(problem.render() for problem in raised.value.problems)
    assert message in told
    assert help_ in told
    assert "two.cases.yaml:" in told
    assert "^" in told


def test_names_that_stand_twice(tmp_path: Path) -> None:
    """A case, and an event, has a name of its own."""
    twice = GOOD + GOOD.split("cases:")[1]
    twice = twice.replace(
        "expect: {matches", "  - {send: {}, name: first}\n        expect: {matches"
    )
    with pytest.raises(ConfigurationError) as raised:
        read(tmp_path, twice)
    messages = [problem.message for problem in raised.value.problems]
    assert "there is a case `one` before" in messages
    assert "there is an event `first` before" in messages


def test_files_that_are_missing(tmp_path: Path) -> None:
    """A case file without its rules says how to name them; a folder without cases is an error."""
    file = written(tmp_path, "alone.cases.yaml", GOOD)
    with pytest.raises(ConfigurationError, match=r"there is no alone\.yaml beside: say which"):
        suites([file], {})
    written(tmp_path, "alone.cases.yaml", "rules: elsewhere.yaml\n" + GOOD.replace("\n    ", "\n"))
    with pytest.raises(ConfigurationError, match=r"there is no .*elsewhere\.yaml"):
        suites([file], {})
    file.unlink()
    with pytest.raises(ConfigurationError, match="there are no test cases"):
        suites([tmp_path], {})


def test_case_files_are_no_rules(tmp_path: Path) -> None:
    """A folder of rules may hold them."""
    read(tmp_path, GOOD)
    assert [rule.id for rule in read_rules(tmp_path).rules] == ["two"]


def test_schema_files_beside(tmp_path: Path) -> None:
    """Several that no input is called like are an error, which says what to write."""
    for name in ("one", "other"):
        written(tmp_path, f"{name}.avsc", '{"type": "record", "name": "E", "fields": []}')
    with pytest.raises(ConfigurationError, match="say which schemas the events have"):
        read(tmp_path, GOOD)


def test_the_schema_file_is_up_to_date() -> None:
    """`schemas/cases.schema.json` is what the code says."""
    assert SCHEMA_FILE.read_text("utf-8") == write_schema()
    assert json.loads(write_schema())["required"] == ["cases"]
