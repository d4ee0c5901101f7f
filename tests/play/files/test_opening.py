"""Files that a person opens: rules, test cases, schemas, recorded events, archives."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from spark_cep.cases.document.shape import CaseStepShape
from spark_cep.errors import ConfigurationError
from spark_cep.play.files.given_files import MOST_BYTES, GivenFile
from spark_cep.play.files.opening import opened
from spark_cep.play.running import played
from spark_cep.play.trial import MOST_ROWS, OF_ALL, RowKind, Trial, TrialRow
from tests.play.trials import PAIR, event, trial

NOW = trial(PAIR, event("0 s", kind="a"))
CASES = """\
event_time: ts
cases:
  - case: repeated
    allowed_disorder: 5 s
    events:
      - {send: {user: ann, kind: a, n: 1}, at: 10 s, name: f, times: 3, every: 2 s}
      - {clock: 2 minutes}
      - restart
    expect: none
  - case: another
    events: [{send: {user: bob, kind: b, n: '2'}, at: 2026-01-01T00:00:07Z}]
    expect: none
"""


def given(name: str, text: str | bytes) -> GivenFile:
    """A file."""
    return GivenFile(name, text.encode() if isinstance(text, str) else text)


def only(*files: GivenFile, now: Trial = NOW) -> Trial:
    """The only trial that the files open as."""
    (found,) = opened(files, now).trials
    return found


def test_a_rule() -> None:
    """It takes the place of the one before, without its events."""
    found = only(given("folder/other.yaml", PAIR.replace("pair", "other")))
    assert (found.file, found.rows) == ("other.yaml", ())
    assert "id: other" in found.text


def test_test_cases() -> None:
    """Each is a trial of the rule that is there; repeated events are rows of their own."""
    first, second = opened([given("pair.cases.yaml", CASES)], NOW).trials
    assert (first.text, first.case, first.event_time) == (PAIR, "repeated", "ts")
    assert first.allowed_disorder == 5_000
    assert [(row.kind.value, row.at, row.name) for row in first.rows] == [
        ("event", "10 s", "f-1"), ("event", "+2 seconds", "f-2"), ("event", "+2 seconds", "f-3"),
        ("clock", "2 minutes", ""), ("restart", "", ""),
    ]  # fmt: skip
    assert first.rows[0].cells == {"user": "ann", "kind": "a", "n": "1"}
    assert second.rows == (
        TrialRow(at="2026-01-01T00:00:07Z", cells={"user": "bob", "kind": "b", "n": "'2'"}),
    )
    assert len(played(first).frames) > 2


def test_a_case_that_is_wrong_is_told_with_its_place() -> None:
    """As `spark-cep test` does."""
    wrong = CASES.replace("at: 10 s", "at: soon")
    with pytest.raises(ConfigurationError) as error:
        opened([given("pair.cases.yaml", wrong)], NOW)
    assert "soon" in error.value.problems[0].render()


def test_an_archive() -> None:
    """Its files are opened together, whatever its folders."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a/../pair.yaml", PAIR)
        archive.writestr("a/pair.cases.yaml", CASES.partition("  - case: another")[0])
        archive.writestr("a/pair.avsc", '{"type": "record", "name": "E", "fields": []}')
    found = only(given("share.zip", content.getvalue()))
    assert (found.text, found.case) == (PAIR, "repeated")
    assert json.loads(found.schemas[OF_ALL])["name"] == "E"
    with pytest.raises(ConfigurationError, match=r"share.zip: cannot be unpacked"):
        opened([given("share.zip", b"PK nothing")], NOW)


def test_json_lines() -> None:
    """Events become rows with times from the first one, with the schema that they seem to have."""
    lines = [
        {"user": "ann", "kind": "a", "n": 1, "ts": "2026-03-01T10:00:00Z"},
        {"user": "ann", "kind": "b", "n": 2, "ts": "2026-03-01T10:00:05.250Z"},
        {"user": "bob", "kind": "17", "ts": "2026-03-01T10:00:04Z"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    opening = opened([given("logins.jsonl", text)], NOW)
    (found,) = opening.trials
    assert found.text == PAIR
    assert [row.at for row in found.rows] == ["0 ms", "5 seconds 250 ms", "4 seconds"]
    assert found.rows[2].cells == {"user": "bob", "kind": "17"}
    assert found.event_time == "ts"
    assert found.allowed_disorder >= 1_250
    assert any("the event time is ts" in note for note in opening.notes)
    result = played(found)
    assert result.problems == ()
    assert [span.kind.value for span in result.spans] == ["match"]


def test_csv_with_the_rule() -> None:
    """A rule, and events for it, opened together."""
    csv = "user,kind,n,ts\nann,a,1,2026-03-01T10:00:00Z\nann,b,2,2026-03-01T10:00:05Z\n"
    found = only(given("pair.yaml", PAIR), given("logins.csv", csv), now=trial("id: x"))
    assert [span.kind.value for span in played(found).spans] == ["match"]


def test_json_is_a_rule_or_events() -> None:
    """By what stands in it."""
    assert only(given("r.json", '{"id": "r", "pattern": [{"step": "a"}]}')).file == "r.json"
    event_ = '{"user": "ann", "kind": "a", "n": 1, "ts": "2026-03-01T10:00:00Z"}\n'
    assert only(given("e.json", event_)).file == NOW.file


def test_messages_name_files_as_they_were_called() -> None:
    """And not where the page put them."""
    with pytest.raises(ConfigurationError) as error:
        opened([given("logins.csv", "user,kind\nann,a\n")], NOW)
    assert "spark-cep-play" not in str(error.value)
    with pytest.raises(ConfigurationError, match=r"^notes\.txt: its name does not say"):
        opened([given("notes.txt", "hello")], NOW)


def test_limits() -> None:
    """Too many bytes, files, rules or events are refused; a packed file is not unpacked beyond."""
    with pytest.raises(ConfigurationError, match="at most 8 MiB"):
        opened([given("e.csv", bytes(MOST_BYTES + 1))], NOW)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("e.csv", bytes(4 * MOST_BYTES))
    with pytest.raises(ConfigurationError, match="at most 8 MiB"):
        opened([given("e.zip", content.getvalue())], NOW)
    with pytest.raises(ConfigurationError, match="one rule file"):
        opened([given("a.yaml", PAIR), given("b.yaml", PAIR)], NOW)
    line = '{"user": "ann", "ts": "2026-03-01T10:00:00Z"}\n'
    with pytest.raises(ConfigurationError, match=f"more than {MOST_ROWS:,} events"):
        opened([given("e.jsonl", line * (MOST_ROWS + 1))], NOW)


def test_text_that_is_none() -> None:
    """Bytes that are not UTF-8 are refused."""
    with pytest.raises(ConfigurationError, match=r"a\.yaml: it is not text in UTF-8"):
        opened([given("a.yaml", b"id: \xff")], NOW)


def test_kinds_of_rows_have_the_names_of_test_cases() -> None:
    """So that a row is written as it is called."""
    fields = set(CaseStepShape.model_fields)
    assert {each.value for each in RowKind} <= fields | {"event", "restart", "finish"}
