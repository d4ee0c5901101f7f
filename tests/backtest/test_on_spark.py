"""A back-test as a job of Spark finds what one process finds."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_cep.backtest.on_spark import SparkReplay
from spark_cep.backtest.replay import OpenMatches, Replay, ReplayedBatch
from spark_cep.backtest.stages.matching import matching_of
from spark_cep.backtest.stages.reading import Failed, PieceSummary, Reading, shares_of
from spark_cep.errors import ConfigurationError
from spark_cep.pipeline.wire.new_schemas import NewSchemasError
from spark_cep.recorded import merging
from spark_cep.recorded.files import avro_files, lines
from spark_cep.recorded.opening import open_events
from spark_cep.rules.rule_set import assemble
from spark_cep.runner.batch import RunSettings
from tests.recorded.logins import FORMS, RULE, login, logins, rules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = RunSettings(key_groups=4, allowed_disorder_ms=1_000)


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    """A rule over events, some of them late, and one line that is none."""
    several = [*logins(30), login("bob", "fail", 121), login("ann", "ok", 5), login("b", "x", 150)]
    FORMS["avro"](tmp_path / "a.avro", several[::2])
    FORMS["jsonl"](tmp_path / "b.jsonl", several[1::2])
    with (tmp_path / "b.jsonl").open("a") as out:
        out.write("{\n")
    opened = open_events([], [str(tmp_path)])
    return Replay(assemble(rules(RULE)), opened, SETTINGS)


def summary(found: list[ReplayedBatch], still: OpenMatches) -> Any:
    """All that a run gives, in no order."""
    return {
        "matches": sorted(m.match_id for each in found for m in each.objects.matches),
        "late": sorted(late.at for each in found for late in each.results.late),
        "letters": sorted(letter.detail for each in found for letter in each.letters),
        "records": sum(each.records for each in found),
        "counted": sum(t.matches for each in found for t in each.tallies.values()),
        "open": (still.counts, still.longest),
    }


def on_stages(replay: Replay, tasks: int) -> Any:
    """The two stages, task by task, in the order that Spark gives to their elements."""
    shares = shares_of(replay.events.recordings, tasks)
    reading = Reading(
        replay.events.snapshot(), replay.plan_text, replace(SETTINGS, key_groups=tasks)
    )
    reading = pickle.loads(pickle.dumps(reading))
    packed = [each for share in shares for each in reading.packed(share)]
    summaries = [each for each in packed if isinstance(each, PieceSummary)]
    # Tasks end in any order.
    matching = matching_of(reading, summaries[::-1], "wait", tasks, True)
    matching = pickle.loads(pickle.dumps(matching))
    others = [each for each in packed if not isinstance(each, PieceSummary)]
    keyed = sorted(matching.keyed(others[::-1]), key=lambda each: each[0])
    found: list[ReplayedBatch] = []
    still = OpenMatches()
    for task in range(tasks):
        mine = [(key, packet) for key, packet in keyed if key[1] == task]
        for each in pickle.loads(pickle.dumps([*matching.matched(task, mine)])):
            if isinstance(each, OpenMatches):
                still.add(each)
            else:
                found.append(each)
    return summary(found, still)


@pytest.mark.parametrize("tasks", [1, 3, 7])
def test_the_stages(tasks: int, replay: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of tasks, and of parts of a file; stages and results can be pickled."""
    monkeypatch.setattr(merging, "_ROWS", 20)
    monkeypatch.setattr(avro_files, "ROWS_TOGETHER", 5)
    monkeypatch.setattr(lines, "BYTES_TOGETHER", 300)
    expected = summary([*replay.run()], replay.open_matches())
    assert (len(expected["matches"]), len(expected["letters"]), expected["records"]) == (30, 1, 124)
    assert len(expected["late"]) == 1
    assert on_stages(replay, tasks) == expected


def test_each_piece_is_read_and_decoded_by_one_task(
    replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All shares together have each record once; a file that is much larger than others is cut."""
    monkeypatch.setattr(avro_files, "ROWS_TOGETHER", 5)
    monkeypatch.setattr(lines, "BYTES_TOGETHER", 300)
    shares = shares_of(replay.events.recordings, 2)
    assert len(shares) > 2
    seen: Counter[tuple[str, int]] = Counter()
    for share in shares:
        for part in share:
            for piece in replay.events.pieces(part.of, SETTINGS):
                records = piece.content.records
                if records is not None:
                    seen.update((records.topic, offset) for offset in records.offset.tolist())
    assert (sum(seen.values()), set(seen.values())) == (124, {1})


def test_what_cannot_be_read_is_told_by_the_driver(tmp_path: Path) -> None:
    """As in one process."""
    FORMS["avro"](tmp_path / "a.avro", logins(3))
    data = (tmp_path / "a.avro").read_bytes()
    opened = open_events([], [str(tmp_path)])
    replay = Replay(assemble(rules(RULE)), opened, SETTINGS)
    (tmp_path / "a.avro").write_bytes(data[:-20])
    reading = Reading(opened.snapshot(), replay.plan_text, SETTINGS)
    (share,) = shares_of(opened.recordings, 1)
    *_, failed = pickle.loads(pickle.dumps([*reading.packed(share)]))
    with pytest.raises(
        ConfigurationError, match=r"a\.avro: the block behind byte \d+ cannot be read"
    ):
        raise failed.raised()
    new = NewSchemasError(["7", "8"])
    assert str(Failed(NewSchemasError, str(new)).raised()) == str(new)


@pytest.mark.spark
def test_the_job(replay: Replay, spark: SparkSession) -> None:
    """On a local master."""
    expected = summary([*replay.run()], replay.open_matches())
    on_spark = SparkReplay(replay, spark.sparkContext, keeps_results=True)
    assert summary([*on_spark.run()], on_spark.open_matches()) == expected
