"""What a batch opens it closes, and what it makes it does not leave behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def abandoned_sockets(pid: int) -> int:
    """Sockets of a process whose other side is closed (state CLOSE_WAIT)."""
    own = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(file.readlink())
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            own.add(target[8:-1])
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()[1:]
    ]
    return sum(fields[3] == "08" and fields[9] in own for fields in lines)


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="needs Linux's /proc")
def test_the_jvm_keeps_no_sockets_of_batches(scenario: Scenario, spark: SparkSession) -> None:
    """Spark's state server leaves its connection behind, unless it is interrupted."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream.send(*((f"k{n}", "ab"[n % 2], n) for n in range(24)))
    gateway: Any = spark.sparkContext._gateway
    pid = gateway.proc.pid
    before = abandoned_sockets(pid)
    scenario.run(source={"max_offsets_per_trigger": 2})
    assert len(scenario.reports) >= 12
    assert abandoned_sockets(pid) - before <= 3


def test_batches_leave_no_files_of_shuffles(scenario: Scenario, spark: SparkSession) -> None:
    """Each batch's go with it, not with some later garbage collection."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream.send(*((f"k{n}", "ab"[n % 2], n) for n in range(24)))
    scratch = Path(spark.sparkContext.getConf().get("spark.local.dir", ""))
    before = set(scratch.rglob("shuffle_*"))
    scenario.run(source={"max_offsets_per_trigger": 2})
    assert len(scenario.reports) >= 12
    assert set(scratch.rglob("shuffle_*")) <= before


def test_code_is_generated_for_a_query_not_for_a_batch(
    scenario: Scenario, spark: SparkSession
) -> None:
    """A number that differs between batches, such as the time, must not stand in the code."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream.send(*((f"k{n}", "ab"[n % 2], n) for n in range(24)))
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    code = jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    before = code.getCount()
    scenario.run(source={"max_offsets_per_trigger": 2})
    assert len(scenario.reports) >= 12
    assert code.getCount() - before < len(scenario.reports)
