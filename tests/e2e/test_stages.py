"""A small batch goes through one stage of Spark's, a larger one through two, between which records
leave their bytes behind if they cannot be late."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_cep.pipeline.wire.reports import Count
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence
from tests.kafka_access import Sent

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

#: More than a small batch has.
MANY = 7_000


def stages_of_last_job(spark: SparkSession) -> list[Any]:
    """What Spark tells of the stages of its last job."""
    context: Any = spark.sparkContext
    store = context._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    stages = max(
        (jobs.apply(n) for n in range(jobs.size())), key=lambda job: int(job.jobId())
    ).stageIds()
    return [store.lastStageAttempt(stages.apply(n)) for n in range(stages.size())]


def shuffled(spark: SparkSession) -> int:
    """The bytes between the two stages of Spark's last job."""
    return sum(int(stage.shuffleWriteBytes()) for stage in stages_of_last_job(spark))


def test_stages(scenario: Scenario, spark: SparkSession) -> None:
    """Also where each of two tasks reads the batch. Keys go on from one kind to the other, and what
    is told of the records is told once."""
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream = Stream(scenario, partitions=2)
    state = {"state_partitions": 2}
    keys = [f"k{n}" for n in range(20)]
    stream.send(*[(key, "a", 0.0) for key in keys])
    scenario.run(state=state)
    assert len(stages_of_last_job(spark)) == 1
    assert scenario.total(Count.RECORDS) == len(keys)
    stream.send(*[(f"x{n}", "x", 1.0) for n in range(MANY)])
    scenario.run(state=state)
    assert len(stages_of_last_job(spark)) == 2
    stream.send(*[(key, "b", 2.0) for key in keys], ("k", "x", 100.0))
    outputs = scenario.run(state=state)
    assert len(stages_of_last_job(spark)) == 1
    assert sorted(match.body["key"] for match in outputs.matches) == sorted(keys)


def test_bytes_of_records(scenario: Scenario, spark: SparkSession) -> None:
    """None of a checkpoint's first events is late. In the first batch of a later run some may be,
    and are written with all that they had."""
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream, random = Stream(scenario), Random(5)
    header = [random.randbytes(400) for _ in range(MANY)]

    def events(seconds: float) -> list[Sent]:
        return [stream.event("k", "a", seconds, headers=[("h", each)]) for each in header]

    stream.send(*events(100.0))
    assert scenario.run().late == []
    assert 0 < shuffled(spark) < MANY * 400 / 4
    stream.send(*events(0.0))
    late = scenario.run().late
    assert shuffled(spark) > MANY * 400
    assert [record.headers["h"] for record in late] == header
