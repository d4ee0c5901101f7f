"""`--update` writes what was found, and leaves all else of a file as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_cep.cases.document.files import suites
from spark_cep.cases.writing.accepting import accept
from spark_cep.errors import ConfigurationError
from tests.cases.files import outcomes, read, written

BEFORE = """\
# Cases of two.
cases:
  # The first one.
  - case: one   # a comment
    events:
      - {send: {user_id: ann, kind: a, amount: 1}, name: first}
      - {send: {user_id: ann, kind: b, amount: 3}, at: 1 s, name: second}
    expect:
      # What was expected.
      matches:
        - key: ann
          measures: {rise: 1}

  # Between them.
  - {case: two, events: [{send: {user_id: ann, kind: a}}, clock: 2 minutes], expect: none}
  - case: three
    expect: none   # for the time being
    events:
      - {send: {user_id: ann, kind: a}}
# The end.
"""
AFTER = """\
# Cases of two.
cases:
  # The first one.
  - case: one   # a comment
    events:
      - {send: {user_id: ann, kind: a, amount: 1}, name: first}
      - {send: {user_id: ann, kind: b, amount: 3}, at: 1 s, name: second}
    expect:
      matches:
        - {key: ann, measures: {rise: 2}}

  # Between them.
  - {case: two, events: [{send: {user_id: ann, kind: a}}, clock: 2 minutes], expect: \
{timeouts: [{key: ann, at: 1 minute, steps: {a: 1}, measures: {rise: null}}]}}
  - case: three
    expect: none   # for the time being
    events:
      - {send: {user_id: ann, kind: a}}
# The end.
"""


def _cases(text: str) -> str:
    return text.replace("[{send: {user_id: ann, kind: a}}, clock: 2 minutes]", (
        "[{send: {user_id: ann, kind: a}}, {clock: 2 minutes}]"
    ))  # fmt: skip


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_only_the_expectation_is_written(tmp_path: Path, ends: str) -> None:
    """Comments and layout around it stay, also in braces; what passes is not touched."""
    suite = read(tmp_path, "cases: [{case: x, events: [], expect: none}]")
    file = suite.file.path
    file.write_bytes(_cases(BEFORE).replace("\n", ends).encode())
    (suite,) = suites([file], {})
    assert accept(outcomes(suite)) == {str(file): 2}
    assert file.read_bytes().decode() == _cases(AFTER).replace("\n", ends)
    (suite,) = suites([file], {})
    found = outcomes(suite)
    assert [each.passed for each in found] == [True] * 3
    assert accept(found) == {}


def test_what_was_open_stays_open(tmp_path: Path) -> None:
    """An expectation keeps its keys, measures and kinds."""
    text = BEFORE.split("\n  # Between", maxsplit=1)[0].replace("measures: {rise: 1}", "at: 2 s")
    suite = read(tmp_path, text)
    accept(outcomes(suite))
    assert "- {key: ann, at: 1 second}" in suite.file.path.read_text("utf-8")


def test_in_a_comment_of_sql(tmp_path: Path) -> None:
    """Lines of a statement's comment begin with dashes."""
    file = written(
        tmp_path,
        "rise.sql",
        """
        -- id: rise
        -- cases:
        --   - case: one
        --     events:
        --       - {send: {v: 1}}
        --       - {send: {v: 2}, at: 1 s}
        --     expect:
        --       matches: none
        SELECT * FROM ticks MATCH_RECOGNIZE (
          ORDER BY ts MEASURES b.v AS top PATTERN (a b) DEFINE b AS v > PREV(v))
        """,
    )
    (suite,) = suites([file], {})
    accept(outcomes(suite))
    (suite,) = suites([file], {})
    (one,) = outcomes(suite)
    assert one.passed
    assert "--       matches:\n--         - " in file.read_text("utf-8")


def test_a_case_that_cannot_be_run(tmp_path: Path) -> None:
    """It is not accepted, and told."""
    text = "cases: [{case: x, events: [{clock: 5 s}, {clock: 1 s}], expect: none}]"
    with pytest.raises(ConfigurationError, match="cannot be accepted"):
        accept(outcomes(read(tmp_path, text)))
