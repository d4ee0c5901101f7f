"""A back-test as a job of Spark finds what one process finds."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_cep.backtest.on_spark import SparkReplay, _Job
from spark_cep.backtest.replay import OpenMatches, Replay, ReplayedBatch
from spark_cep.recorded import avro_files, events
from spark_cep.recorded.opening import open_events
from spark_cep.rules.rule_set import assemble
from spark_cep.runner.batch import RunSettings
from tests.recorded.files import FORMS, RULE, login, logins, rules

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


def test_the_stages(replay: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of tasks; jobs and results can be pickled."""
    monkeypatch.setattr(events, "_ROWS", 20)
    monkeypatch.setattr(avro_files, "ROWS_TOGETHER", 5)
    expected = summary([*replay.run()], replay.open_matches())
    assert (len(expected["matches"]), len(expected["letters"]), expected["records"]) == (30, 1, 124)
    job = _Job(replay.events.snapshot(), replay.plan_text, SETTINGS, "wait", 3, True)
    job = pickle.loads(pickle.dumps(job))
    packed = sorted((row for n in range(3) for row in job.packed([n])), key=lambda row: row[0])
    found: list[ReplayedBatch] = []
    still = OpenMatches()
    for task in range(3):
        mine = [(key, packet) for key, packet in packed if key[1] % 3 == task]
        for each in pickle.loads(pickle.dumps([*job.matched(mine)])):
            if isinstance(each, OpenMatches):
                still.add(each)
            else:
                found.append(each)
    assert summary(found, still) == expected


@pytest.mark.spark
def test_the_job(replay: Replay, spark: SparkSession) -> None:
    """On a local master."""
    expected = summary([*replay.run()], replay.open_matches())
    on_spark = SparkReplay(replay, spark.sparkContext, keeps_results=True)
    assert summary([*on_spark.run()], on_spark.open_matches()) == expected
