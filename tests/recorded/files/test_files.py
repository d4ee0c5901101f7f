"""Files of every format give the events that a topic would."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import fastavro
import pytest

from spark_cep.errors import ConfigurationError
from spark_cep.match_ids import match_id
from spark_cep.model import Coordinates, TakenEvent
from spark_cep.recorded import events, merging
from spark_cep.recorded.events import WantedRecords
from spark_cep.recorded.files import avro_files
from spark_cep.recorded.merging import Piece
from spark_cep.recorded.opening import open_events, window_of
from spark_cep.recorded.recording import Recording
from spark_cep.runner.batch import RunSettings
from tests.recorded.logins import FORMS, SCHEMA, START, iso, login, logins, rules, run

#: With a schema where the format has none.
EVENTS = logins()


@pytest.fixture
def schema(tmp_path: Path) -> str:
    """A schema file."""
    file = tmp_path / "login.avsc"
    file.write_text(json.dumps(SCHEMA), "utf-8")
    return str(file)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("declared", [True, False])
def test_each_format_gives_the_same(form: str, declared: bool, tmp_path: Path, schema: str) -> None:
    """With the coordinates that the file's name has, so ids are those of the topic."""
    file = tmp_path / f"logins+3+100.{form}"
    FORMS[form](file, EVENTS)
    times = ["ts:millis"] if not declared and form in {"json", "csv"} else []
    opened = open_events([], [str(file)], None, [schema] if declared else [], times)
    found, letters = run(opened)
    assert letters == found.outputs.dead_letters == []
    matches = sorted(found.outputs.matches, key=lambda match: match.start)
    assert [match.key for match in matches] == ["ann 0", "ann 1", "ann 2"]
    assert [each.at for each in matches[1].steps["fail"]] == [
        Coordinates("logins", 3, offset) for offset in (104, 105, 106)
    ]
    assert [match.measures["sum"] for match in matches] == [4.0] * 3
    steps = {
        name: [TakenEvent(Coordinates("logins", 3, offset), 0) for offset in offsets]
        for name, offsets in (("fail", (104, 105, 106)), ("ok", (107,)))
    }
    assert matches[1].match_id == match_id("fails", 3, "ann 1", steps)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.jsonl", '{"user": "ann",\n', "the value is not JSON: "),
        ("a.jsonl", '{"user": 5, "kind": "ok", "ts": 1}\n', "user: found the number 5"),
        ("a.jsonl", '{"user": "ann", "ts": 1}\n', "kind: the field is missing"),
        ("a.jsonl", "[1]\n", "the value is an array of JSON"),
        ("a.csv", "ann,ok,1.0\n", "a.csv, line 7: Expected 4 columns, got 3"),
        ("a.csv", "ann,ok,much,1700000000000\n", "much"),
    ],
)
def test_a_bad_line_is_a_dead_letter(
    name: str, text: str, why: str, tmp_path: Path, schema: str
) -> None:
    """With file and line as its coordinates, and its text; all others are read."""
    file = tmp_path / name
    FORMS[name.partition(".")[2]](file, EVENTS)
    lines = file.read_text("utf-8").splitlines(keepends=True)
    sound = lines[:5]
    file.write_text("".join([*sound, "\n", text, *lines[5:]]), "utf-8")
    ended = ["ts:millis"] if name.endswith("csv") else []
    found, letters = run(open_events([], [str(file)], None, [schema], ended))
    assert len(found.outputs.matches) == 3
    letters += found.outputs.dead_letters
    (letter,) = letters
    assert letter.at == Coordinates(str(file), 0, 7)
    assert why in letter.detail
    assert letter.record_value == text.strip().encode()


def test_quoted_line_ends_and_delimiters(tmp_path: Path, schema: str) -> None:
    """They are a part of the value; line numbers count them."""
    file = tmp_path / "a.csv"
    user = 'ann\n"the" one, 0'
    FORMS["csv"](file, [{**each, "user": user} for each in logins(1)])
    file.write_text(file.read_text("utf-8") + "x\n", "utf-8")
    found, (letter,) = run(open_events([], [str(file)], None, [schema], ["ts:millis"]))
    assert [match.key for match in found.outputs.matches] == [user]
    assert letter.at.offset == 10


def test_a_damaged_record_of_an_avro_file(tmp_path: Path) -> None:
    """The records in front of it, and those of all other blocks, are read; a dead letter has what
    is left of the block."""
    file = tmp_path / "a.avro"
    parsed = fastavro.parse_schema(dict(SCHEMA))
    body = BytesIO()
    fastavro.writer(body, parsed, EVENTS, sync_interval=1, codec="null")
    data = body.getvalue()
    # The length of the sixth record's first text.
    at = data.index(b"ann 1", data.index(b"ann 1") + 1)
    file.write_bytes(data[: at - 1] + b"\xff" + data[at:])
    found, (letter,) = run(open_events([], [str(file)]))
    assert [match.key for match in found.outputs.matches] == ["ann 0", "ann 2"]
    assert letter.at == Coordinates(str(file), 0, 5)
    assert "record 5, in the block at byte" in letter.detail
    file.write_bytes(data[:-20])
    with pytest.raises(Exception, match=r"a\.avro: the block behind byte \d+ cannot be read"):
        run(open_events([], [str(file)]))


def test_a_value_that_production_refuses_is_its_dead_letter(tmp_path: Path) -> None:
    """A record of a container is judged by the decoder."""
    file = tmp_path / "a.avro"
    FORMS["avro"](file, [*EVENTS, login("ann", "ok", 1e12)])
    found, letters = run(open_events([], [str(file)]))
    assert letters == []
    (letter,) = found.outputs.dead_letters
    assert letter.reason == "value_out_of_range"
    assert letter.at == Coordinates(str(file), 0, len(EVENTS))


def test_files_of_a_folder_are_read_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By event time, whatever their names: nothing is late, whichever file has what."""
    monkeypatch.setattr(merging, "_ROWS", 10)
    monkeypatch.setattr(avro_files, "ROWS_TOGETHER", 5)
    several = logins(40)
    for number in range(3):
        FORMS["avro"](tmp_path / f"part-{number}.avro", several[number::3])
    for day in (2, 1):
        FORMS["jsonl"](tmp_path / f"z-{3 - day}.jsonl", logins(5, 1000.0 * day))
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden.avro").write_text("")
    found, letters = run(open_events([], [str(tmp_path)]))
    assert (found.late, letters) == ([], [])
    assert len(found.outputs.matches) == 50
    assert found.watermark == START + 2_000_000 + 19_000


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("most_open", [64, 0])
def test_a_small_file_is_read_once(
    form: str, most_open: int, tmp_path: Path, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first records are kept until it is their turn; of too many files they are read again."""
    monkeypatch.setattr(events, "_MOST_OPEN", most_open)
    for number in range(3):
        FORMS[form](tmp_path / f"a-{number}.{form}", EVENTS)
    opened = open_events([], [str(tmp_path)], None, [schema], ["ts:millis"])
    begun: Counter[str] = Counter()
    pieces = opened.pieces

    def counted(recording: Recording, settings: RunSettings) -> Iterator[Piece[WantedRecords]]:
        begun[recording.name] += 1
        return pieces(recording, settings)

    monkeypatch.setattr(opened, "pieces", counted)
    found, _ = run(opened)
    assert len(found.outputs.matches) > 0
    assert {*begun.values()} == {1 if most_open else 2}


@pytest.mark.parametrize(
    ("start", "end", "matches"), [(None, None, 3), (4, None, 2), (None, 8, 2), (5, 12, 1)]
)
def test_events_of_a_window(
    start: int | None, end: int | None, matches: int, tmp_path: Path
) -> None:
    """From a time on, to before another."""
    file = tmp_path / "a.avro"
    FORMS["avro"](file, EVENTS)
    window = window_of(*(None if s is None else iso(START + s * 1000) for s in (start, end)))
    found, _ = run(open_events([], [str(file)]).within(window))
    assert len(found.outputs.matches) == matches


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("disorder", "late"), [(0, [3, 4, 6]), (3_000, [4, 6]), (9_000, [6]), (60_000, [])]
)
def test_late_events(
    form: str, disorder: int, late: list[int], tmp_path: Path, schema: str
) -> None:
    """Behind an earlier event of the file by more than is allowed, however small it is."""
    seconds = [0, 10, 20, 17.5, 11, 30, 0]
    file = tmp_path / f"logins+0+0.{form}"
    FORMS[form](file, [login("ann", "fail", each) for each in seconds])
    settings = RunSettings(key_groups=4, allowed_disorder_ms=disorder)
    found, letters = run(open_events([], [str(file)], None, [schema]), settings=settings)
    assert [each.at.offset for each in found.late] == late
    assert letters == []


def test_a_time_that_cannot_be_moves_no_watermark(tmp_path: Path) -> None:
    """It is a dead letter, and what follows is in time."""
    FORMS["avro"](tmp_path / "a.avro", [login("ann", "fail", 1e12), *EVENTS])
    found, _ = run(open_events([], [str(tmp_path)]))
    assert (len(found.late), len(found.outputs.matches)) == (0, 3)


def test_the_end(tmp_path: Path) -> None:
    """Time stands at the last event, or everything is decided."""
    file = tmp_path / "a.avro"
    FORMS["avro"](file, EVENTS[:3])
    text = (
        "id: r\nkey: user\npattern: [{step: a}, {step: b, after: not_followed_by}]\nwithin: 9 s\n"
    )
    assert rules(text)
    waits, _ = run(open_events([], [str(file)]), text)
    decided, _ = run(open_events([], [str(file)]), text, "decide")
    assert (len(waits.outputs.matches), len(decided.outputs.matches)) == (0, 1)


MESSAGES = {
    "no such file": (["none.avro"], r"none\.avro: there is no such file or folder"),
    "suffix": (["rule.yaml"], r"its name does not say what it is; .*\.avro, \.jsonl"),
    "empty folder": (["empty"], "there is no file of events in this folder"),
    "no header": (["bare.csv"], "has to have the name of each column, and has the value '2023-11"),
    "array": (["array.json"], r"is one JSON array; an object a line is needed, as jq -c '\.\[\]'"),
    "no avro": (["text.avro"], "is no Avro container file"),
    "no parquet": (["text.parquet"], "is no Parquet file"),
    "no records": (["nothing.jsonl"], "has no records"),
    "no time": (["number.jsonl"], r"it has no timestamp; name it with --event-time: .* as n"),
}


@pytest.mark.parametrize("what", MESSAGES)
def test_messages(what: str, tmp_path: Path) -> None:
    """They name the file, what was found and what is allowed."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "rule.yaml").write_text("id: r")
    (tmp_path / "array.json").write_text('[{"a": 1}]')
    (tmp_path / "bare.csv").write_text("ann,2023-11-14T22:13:20Z\nbob,2023-11-14T22:13:21Z\n")
    (tmp_path / "text.avro").write_text("text")
    (tmp_path / "text.parquet").write_text("text")
    (tmp_path / "nothing.jsonl").write_text("\n")
    (tmp_path / "number.jsonl").write_text('{"n": 5}\n')
    names, message = MESSAGES[what]
    with pytest.raises(Exception, match=message):
        open_events([], [str(tmp_path / name) for name in names])


def test_several_inputs_are_named(tmp_path: Path) -> None:
    """Those of the rules, or of the settings."""
    (tmp_path / "a.jsonl").write_text("{}")
    several = rules("id: r\nevents: [orders, payments]\nkey: k\npattern: [{step: a}]\n")
    path = str(tmp_path / "a.jsonl")
    with pytest.raises(Exception, match=f"--input orders={path}; the inputs are orders, payments"):
        open_events([several[0].rule], [path])
    with pytest.raises(Exception, match="there is no input 'order'; did you mean `orders`"):
        open_events([several[0].rule], [f"order={tmp_path / 'b.jsonl'}"])


def test_json_lines_beside_other_files(tmp_path: Path, schema: str) -> None:
    """Of one input: each form is read as it is, and their events are one stream; two inputs cannot
    share a topic that has lines of JSON."""
    FORMS["avro"](tmp_path / "logins+0+0.avro", EVENTS[::2])
    FORMS["jsonl"](tmp_path / "others+0+0.jsonl", EVENTS[1::2])
    found, letters = run(open_events([], [str(tmp_path)], None, [schema]))
    assert letters == found.outputs.dead_letters == []
    assert {match.key for match in found.outputs.matches} == {"ann 0", "ann 1", "ann 2"}
    FORMS["jsonl"](tmp_path / "logins+0+99.jsonl", EVENTS)
    with pytest.raises(ConfigurationError, match="files of the topic logins are read as"):
        open_events([], [str(tmp_path)], None, [schema])
