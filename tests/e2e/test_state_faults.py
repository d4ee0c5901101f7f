"""What happens to a checkpoint, and what the job does: go on with complete results, or end with a
message that says what to do. Never a wrong result in silence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from spark_cep.cli.exit_codes import exit_code
from spark_cep.errors import StateError
from spark_cep.packing import pack, sealed, unpack, unsealed
from spark_cep.pipeline.driver import dataflow
from spark_cep.pipeline.match.match import Matching, MatchProcessor
from spark_cep.pipeline.state.entries import EntryMap
from spark_cep.pipeline.state.group_format import GROUP
from spark_cep.rules.plans import plan_of
from tests.e2e.halfway import Copy, Halfway
from tests.e2e.schemas import MILLIS, record
from tests.e2e.small_disk import small_disk
from tests.e2e.stream import EVENT

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

Damage = Callable[[Copy], None]


def checksum(file: Path) -> Path:
    """Where Hadoop keeps the checksum of a file."""
    return file.with_name(f".{file.name}.crc")


def deleted(place: Callable[[Copy], Path]) -> Damage:
    """A file or folder is gone."""

    def damage(copy: Copy) -> None:
        found = place(copy)
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink()
            checksum(found).unlink(missing_ok=True)

    return damage


def cut(place: Callable[[Copy], Path]) -> Damage:
    """Only half of a file was written, and no checksum of it."""

    def damage(copy: Copy) -> None:
        found = place(copy)
        found.write_bytes(found.read_bytes()[: found.stat().st_size // 2])
        checksum(found).unlink(missing_ok=True)

    return damage


def flipped(place: Callable[[Copy], Path]) -> Damage:
    """One bit of a file is another."""

    def damage(copy: Copy) -> None:
        found = place(copy)
        data = bytearray(found.read_bytes())
        data[len(data) // 2] ^= 1
        found.write_bytes(data)

    return damage


def newest(folder: str, ending: str = "") -> Callable[[Copy], Path]:
    """The newest file of a folder."""
    return lambda copy: copy.newest(folder, ending)


def at(name: str) -> Callable[[Copy], Path]:
    """A file or folder."""
    return lambda copy: copy.checkpoint / name


CHANGES, SNAPSHOT = newest("state/0/0", ".changelog"), newest("state/0/0", ".zip")

#: What is said, for each kind of damage.
REFUSED: dict[str, tuple[Damage, str]] = {
    "newest changes missing": (deleted(CHANGES), r"state/0/0/3\.changelog"),
    "newest changes cut": (cut(CHANGES), "a file of the checkpoint is missing or damaged"),
    "bit of newest changes": (flipped(CHANGES), r"state/0/0/3\.changelog"),
    "snapshot cut": (cut(SNAPSHOT), "a file of the checkpoint is missing or damaged"),
    "a partition missing": (deleted(at("state/0/1")), r"state/0/1/1\.changelog"),
    "state missing": (deleted(at("state")), "the checkpoint's folder `state` is missing"),
    "newest offsets missing": (deleted(newest("offsets")), "offsets/2 is missing"),
    "newest offsets cut": (cut(newest("offsets")), "offsets/2 is damaged"),
    "newest commit cut": (cut(newest("commits")), "commits/2 is damaged"),
    "metadata missing": (deleted(at("metadata")), "metadata is missing"),
    "metadata cut": (cut(at("metadata")), "metadata is damaged"),
    "operator metadata missing": (
        deleted(at("state/0/_metadata")),
        "a file of the checkpoint is missing or damaged",
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_is_refused(halfway: Halfway, tmp_path: Path, fault: str) -> None:
    """The job ends with the exit code for state; the message names what is wrong and what to do."""
    damage, message = REFUSED[fault]
    copy = halfway.copy(tmp_path, damage)
    with pytest.raises(StateError, match=message) as caught:
        copy.finish()
    assert "restore the checkpoint from a copy, or start from a new checkpoint" in str(caught.value)
    assert str(copy.checkpoint) in str(caught.value)
    assert exit_code(caught.value) == 7


#: What Spark makes again, or a batch that is repeated.
HANDLED: dict[str, Damage] = {
    "newest commit missing": deleted(newest("commits")),
    "all commits missing": deleted(at("commits")),
    "schema of the state missing": deleted(at("state/0/_stateSchema")),
}


@pytest.mark.parametrize("fault", HANDLED)
def test_what_is_handled(halfway: Halfway, tmp_path: Path, fault: str) -> None:
    """The results are complete; records of a batch that is repeated have their ids of before."""
    copy = halfway.copy(tmp_path, HANDLED[fault])
    assert copy.finish().once() == halfway.expected


def test_offsets_and_commits_missing(halfway: Halfway, tmp_path: Path) -> None:
    """State without any record of how far it was read is not taken for a new checkpoint."""

    def damage(copy: Copy) -> None:
        for name in ("offsets", "commits", "metadata"):
            shutil.rmtree(path) if (path := copy.checkpoint / name).is_dir() else path.unlink()

    copy = halfway.copy(tmp_path, damage)
    with pytest.raises(StateError, match="no record of how far it was read"):
        copy.finish()


# Bytes of ours.


def writing(change: Callable[[MatchProcessor], None]) -> type[Matching]:
    """Makes matchers whose writing to the state is changed; defined here, so that it reaches the
    workers by value."""

    class Changed(MatchProcessor):
        def open(self, entries: EntryMap) -> None:
            super().open(entries)
            change(self)

    class ChangedMatching(Matching):
        def processor(self, rules: str) -> MatchProcessor:
            return Changed(plan_of(rules), self.encoder, self.options)

    return ChangedMatching


def test_a_bit_of_a_bucket(
    halfway: Halfway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reached Spark's store with one bit changed is refused when it is read."""

    def change(processor: MatchProcessor) -> None:
        entries = processor.groups.entries
        put = entries.put

        def flipped(name: str, value: bytes | None) -> bytes | None:
            if name == GROUP or value is None:
                return value
            return value[:-1] + bytes([value[-1] ^ 1])

        def flipping(values: Sequence[tuple[str, bytes | None]]) -> None:
            put([(name, flipped(name, value)) for name, value in values])

        entries.put = flipping  # type: ignore[method-assign]

    copy = halfway.copy(tmp_path)
    monkeypatch.setattr(dataflow, "Matching", writing(change))
    copy.run_one_batch(20)
    monkeypatch.undo()
    with pytest.raises(
        StateError, match="not what was written last, its checksum is another; restore"
    ):
        copy.finish()


def test_state_of_an_older_version(
    halfway: Halfway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its format is named, and which version can read it."""

    def older(name: str, value: bytes | None) -> bytes | None:
        if name != GROUP or value is None:
            return value
        return sealed(pack({**unpack(unsealed(value)), "format": 1}))

    def change(processor: MatchProcessor) -> None:
        entries = processor.groups.entries
        put = entries.put

        def put_older(values: Sequence[tuple[str, bytes | None]]) -> None:
            put([(name, older(name, value)) for name, value in values])

        entries.put = put_older  # type: ignore[method-assign]

    copy = halfway.copy(tmp_path)
    monkeypatch.setattr(dataflow, "Matching", writing(change))
    copy.run_one_batch(20)
    monkeypatch.undo()
    with pytest.raises(StateError, match=r"has format 1, .* or run the version that wrote it"):
        copy.finish()


# The job is another one.


def test_other_key_groups(halfway: Halfway, tmp_path: Path) -> None:
    """By a file of the offsets from elsewhere: the keys would not be found."""
    copy = halfway.copy(tmp_path)
    for name in ("offsets", "commits"):
        newest = copy.newest(name)
        newest.with_name(f".{newest.name}.crc").unlink()
        text = newest.read_text("utf-8")
        newest.write_text(text.replace('"key_groups": 2', '"key_groups": 1'), "utf-8")
    with pytest.raises(StateError, match="written with 2 key groups, and the checkpoint's offsets"):
        copy.finish()


def test_other_inputs(halfway: Halfway, tmp_path: Path) -> None:
    """A checkpoint that has read topics which the job does not read is another job's."""
    copy = halfway.copy(tmp_path)
    other = halfway.scenario.topic("other")
    halfway.scenario.kafka.create_topics({other: 1})
    halfway.scenario.register("other", EVENT)
    events = {"topics": [other], "event_time": "ts"}
    with pytest.raises(StateError, match="if this is another job, give it a checkpoint"):
        copy.finish(inputs={"events": events})


def test_another_reader_schema(halfway: Halfway, tmp_path: Path) -> None:
    """Without a column that there was, and with a new one: partial matches and events that wait
    stay what they are."""
    copy = halfway.copy(tmp_path)
    changed = record("e2e.Event", ts=MILLIS, k="string", name="string")
    changed["fields"].append({"name": "new", "type": ["null", "string"], "default": None})
    schema = tmp_path / "reader.avsc"
    schema.write_text(json.dumps(changed), "utf-8")
    events = halfway.scenario.document()["inputs"]["events"]
    events = {**events, "reader_schema": {"file": str(schema)}}
    assert copy.finish(inputs={"events": events}) == halfway.expected


# No room.


def fill(file: Path) -> None:
    """Take all the room that is left."""
    with suppress(OSError), file.open("wb", buffering=0) as out:
        while True:
            out.write(bytes(4096))


def test_a_full_disk(halfway: Halfway, tmp_path: Path) -> None:
    """The job ends, and says where there is no room; when there is, the next start completes the
    results."""
    with small_disk(tmp_path / "disk", "1m") as disk:
        copy = halfway.copy(disk)
        filler = disk / "filler"
        fill(filler)
        with pytest.raises(StateError, match="there is no room left") as caught:
            copy.finish()
        assert str(copy.checkpoint) in str(caught.value)
        assert "make room, and start again" in str(caught.value)
        filler.unlink()
        assert copy.finish().once() == halfway.expected
