"""``spark-cep reset-clock`` on a job stopped half-way."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_cep.errors import ConfigurationError
from spark_cep.pipeline.driver.commands.reset_clock import SetBack, reset_clock
from spark_cep.pipeline.driver.commands.state_report import read_state
from tests.e2e.halfway import Halfway, Ids
from tests.e2e.stream import at

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def test_the_next_start_sets_it_back(halfway: Halfway, spark: SparkSession, tmp_path: Path) -> None:
    """To before all events: a batch that was left undone is repeated with the clock of before; then
    partial matches end and waiting events become dead letters, once, over restarts, too. The second
    half is as for a job that begins with it."""
    copy = halfway.copy(tmp_path)
    commit = copy.newest("commits")
    commit.unlink()
    commit.with_name(f".{commit.name}.crc").unlink()
    to = at(-60)
    watermark = read_state(copy.settings(), spark=spark).watermark
    assert watermark > to
    with pytest.raises(ConfigurationError, match="and can only be set back"):
        reset_clock(copy.settings(), watermark, spark)
    assert reset_clock(copy.settings(), None, spark) == SetBack(watermark, None, written=False)
    assert reset_clock(copy.settings(), to, spark) == SetBack(watermark, to, written=True)
    assert reset_clock(copy.settings(), to, spark) == SetBack(watermark, to, written=False)
    copy.run_one_batch(50)
    expected = halfway.of_second_half()
    # The output topics are the copy's own, so the repeated batch writes there.
    assert copy.finish().once() == Ids(
        sorted({*halfway.before.matches, *expected.matches}),
        sorted({*halfway.before.timeouts, *expected.timeouts}),
    )
    letters = copy.scenario.outputs(**copy.topics).reasons()
    assert {reason for _, reason in letters} == {"event_time_out_of_bounds"}
    assert max(offset for offset, _ in letters) < halfway.half
