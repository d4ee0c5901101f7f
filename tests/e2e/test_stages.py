"""A small batch goes through one stage of Spark's, a larger one through two."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_cep.pipeline.wire.reports import Count
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

#: More than a small batch has.
MANY = 7_000


def last_stages(spark: SparkSession) -> int:
    """The number of stages of Spark's last job."""
    context: Any = spark.sparkContext
    jobs = context._jsc.sc().statusStore().jobsList(None)
    newest = max((jobs.apply(n) for n in range(jobs.size())), key=lambda job: int(job.jobId()))
    return int(newest.stageIds().size())


def test_stages(scenario: Scenario, spark: SparkSession) -> None:
    """Also where each of two tasks reads the batch. Keys go on from one kind to the other, and what
    is told of the records is told once."""
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream = Stream(scenario, partitions=2)
    state = {"state_partitions": 2}
    keys = [f"k{n}" for n in range(20)]
    stream.send(*[(key, "a", 0.0) for key in keys])
    scenario.run(state=state)
    assert last_stages(spark) == 1
    assert scenario.total(Count.RECORDS) == len(keys)
    stream.send(*[(f"x{n}", "x", 1.0) for n in range(MANY)])
    scenario.run(state=state)
    assert last_stages(spark) == 2
    stream.send(*[(key, "b", 2.0) for key in keys], ("k", "x", 100.0))
    outputs = scenario.run(state=state)
    assert last_stages(spark) == 1
    assert sorted(match.body["key"] for match in outputs.matches) == sorted(keys)
