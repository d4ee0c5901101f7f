"""The whole job writes once: after a crash at the worst moment, with a wrong checkpoint, and when
a second instance appears."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from spark_cep.errors import SparkCepError, StateError
from spark_cep.pipeline.driver.observe.progress import BatchReport
from tests.e2e.command import running
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence
from tests.kafka_access import KafkaAccess

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

BROKEN_OFF = "the driver is gone"


def _ab(scenario: Scenario) -> Stream:
    scenario.rule(sequence("ab", "a", "followed_by b"))
    return Stream(scenario)


def _crash(_report: BatchReport) -> None:
    raise RuntimeError(BROKEN_OFF)


def test_a_crash_between_the_outputs_commit_and_the_checkpoints(scenario: Scenario) -> None:
    """The worst moment: Spark runs the batch again, and nothing of it is written again."""
    stream = _ab(scenario)
    stream.send(("k", "a", 0), ("k", "b", 1), ("k", "x", 9), ("k", "a", 10), ("k", "b", 2))
    service = scenario.service(on_batch=_crash)
    with pytest.raises(SparkCepError, match=BROKEN_OFF):
        service.run()
    written = scenario.outputs()
    assert len(written.matches) == 1
    again = scenario.run()
    assert again.match_ids() == written.match_ids()
    result = scenario.metric("spark_cep_partition_writes_total", result="written_before")
    assert result == 1.0
    stream.send(("k", "b", 11), ("k", "x", 20))
    assert len(scenario.run().matches) == 2


def test_a_lost_or_older_checkpoint_is_refused(scenario: Scenario) -> None:
    """Nothing is written, to the folder neither; the message says what to do. What was
    asked for expressly is done."""
    stream = _ab(scenario)
    stream.send(("k", "a", 0), ("k", "b", 1), ("k", "x", 9))
    written = scenario.run().match_ids()
    checkpoint = scenario.folder / "checkpoint"
    shutil.copytree(checkpoint, scenario.folder / "copy")
    stream.send(("k", "a", 10), ("k", "b", 11), ("k", "x", 19))
    written = scenario.run().match_ids()
    assert len(written) == 2
    shutil.rmtree(checkpoint)
    with pytest.raises(StateError, match=r"the checkpoint is empty .*if_commit_markers_disagree"):
        scenario.run()
    assert not any(checkpoint.iterdir())
    shutil.copytree(scenario.folder / "copy", checkpoint, dirs_exist_ok=True)
    with pytest.raises(StateError, match=r"only come to batch .* restore the right one"):
        scenario.run()
    assert scenario.outputs().match_ids() == written
    again = scenario.run(outputs={"if_commit_markers_disagree": "go_on"})
    assert sorted(set(again.match_ids())) == written
    assert len(again.matches) == 3


def _all_committed(checkpoint: Path) -> bool:
    """Nothing is in flight, and with silent input nothing will be."""
    planned, done = (
        {file.name for file in (checkpoint / log).iterdir() if file.name.isdigit()}
        for log in ("offsets", "commits")
    )
    return planned == done


def test_a_second_instance_takes_over(kafka: KafkaAccess, registry: str, tmp_path: Path) -> None:
    """The first ends with a code of its own; what both wrote is there once. The second has
    a copy of the checkpoint, since on one machine a checkpoint is held by one process."""
    scenario = Scenario(kafka, registry, None, tmp_path)
    stream = _ab(scenario)
    document = scenario.document(
        trigger={"mode": "continuous", "latency": "100 ms"},
        spark={
            "master": "local[2]",
            "conf": {
                "spark.driver.memory": "1g",
                "spark.sql.warehouse.dir": str(scenario.folder / "warehouse"),
            },
        },
        observability={"metrics_port": 0, "log_level": "info", "log_format": "json"},
    )
    stream.send(("k", "a", 0), ("k", "b", 1), ("k", "x", 9))
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    with running(folders[0], document) as first:
        first.wait_for(lambda: len(scenario.outputs().matches) == 1)
        first.wait_for(lambda: _all_committed(tmp_path / "checkpoint"))
        shutil.copytree(tmp_path / "checkpoint", tmp_path / "copy")
        moved = {**document, "state": {**document["state"], "checkpoint": str(tmp_path / "copy")}}
        with running(folders[1], moved) as second:
            second.wait_for(lambda: "batch_done" in second.log.read_text("utf-8"))
            stream.send(("k", "a", 10), ("k", "b", 11), ("k", "x", 19))
            second.wait_for(lambda: len(scenario.outputs().matches) == 2)
            assert first.wait(60) == 8
            assert "another instance of the service" in first.end_of_log()
            stream.send(("k", "a", 20), ("k", "b", 21), ("k", "x", 29))
            second.wait_for(lambda: len(scenario.outputs().matches) == 3)
            assert second.terminate()[0] == 0
    assert len(set(scenario.outputs().match_ids())) == 3
