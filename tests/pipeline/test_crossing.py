"""Records that pass as two numbers, and those that are carried, next to what they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from service.pipeline.crossing import Tally, carried, cross, passed, tallied

pytestmark = pytest.mark.spark

FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999
COLUMNS = (
    "topic STRING, partition INT, time BIGINT, fault INT, kafka_time BIGINT, size INT,"
    " wanted BOOLEAN, number INT"
)


class Row(NamedTuple):
    """What a record is counted by, and whether somebody wants it."""

    topic: str
    partition: int
    time: int | None
    fault: int
    kafka_time: int
    size: int
    wanted: bool
    number: int

    @property
    def fits(self) -> bool:
        """Whether two numbers can hold it."""
        return self.partition < 2**15 and self.size < 2**19 and abs(self.kafka_time) < 2**42


def some_rows(random: Random, topics: list[str]) -> list[Row]:
    """Many of two partitions, and some at and beyond each bound."""
    rows = [
        Row(
            random.choice(topics),
            random.randrange(2),
            random.choice([None, FIRST, LAST, 0, -1, *(random.randrange(10**13),) * 9]),
            random.choice([0] * 9 + [1, 2]),
            random.choice([-1, 0, *(random.randrange(2 * 10**12),) * 9]),
            random.randrange(2**19),
            random.random() < 0.2,
            number,
        )
        for number in range(3_000)
    ]
    odd = [
        {"partition": 2**15 - 1},
        {"partition": 2**15},
        {"partition": 2**31 - 1},
        {"size": 0},
        {"size": 2**19 - 1},
        {"size": 2**19},
        {"kafka_time": 2**42 - 1},
        {"kafka_time": 2**42},
        {"kafka_time": -(2**42) + 1},
        {"kafka_time": -(2**42)},
        {"partition": 77, "time": None},
        {"partition": 78, "time": FIRST, "kafka_time": -1, "size": 0},
    ]
    return rows + [
        rows[0]._replace(wanted=False, number=len(rows) + n, **each) for n, each in enumerate(odd)
    ]


@pytest.mark.parametrize("topics", [["one"], ["one", "two", "três"]])
def test_everything_counts_and_what_is_wanted_is_there(
    spark: SparkSession, topics: list[str]
) -> None:
    """Counts, newest times and sizes are those of the records, however they came; what somebody
    wants, or does not fit, has its columns."""
    rows = some_rows(Random(len(topics)), topics)
    topic = topics[0] if len(topics) == 1 else None
    frame = spark.createDataFrame(rows, COLUMNS)
    table = cross(frame, "wanted", [*map(F.col, frame.columns)], topic).toArrow()
    batches = table.to_batches(max_chunksize=400)
    whole = carried(batches)
    expected = {row.number: row for row in rows if row.wanted or not row.fits}
    assert {row["number"]: Row(**row) for row in whole.to_pylist()} == expected
    apart = [tally for batch in batches for tally in passed([batch], topic)]
    of_all = summed(
        Tally(r.topic, r.partition, r.fault, 1, r.time, r.kafka_time, r.size) for r in rows
    )
    assert summed([*tallied(whole), *passed(batches, topic)]) == of_all
    assert summed([*tallied(whole), *apart]) == of_all


def test_nothing_passed_or_nothing_carried(spark: SparkSession) -> None:
    """Either may be empty."""
    rows = some_rows(Random(0), ["one"])[:100]
    frame = spark.createDataFrame(rows, COLUMNS)
    for wanted in (True, False):
        batches = cross(frame, str(wanted), [F.col("number")], "one").toArrow().to_batches()
        assert carried(batches).num_rows == (100 if wanted else 0)
        assert sum(tally.records for tally in passed(batches, "one")) == (0 if wanted else 100)


def summed(
    tallies: Iterable[Tally],
) -> dict[tuple[str, int, int], tuple[int, int | None, int, int]]:
    """By topic, partition and fault: records, newest time, newest timestamp, bytes."""
    found = defaultdict(list)
    for tally in tallies:
        found[tally.topic, tally.partition, tally.fault].append(tally)
    return {
        which: (
            sum(t.records for t in some),
            max((t.time for t in some if t.time is not None), default=None),
            max(t.kafka_time for t in some),
            sum(t.size for t in some),
        )
        for which, some in found.items()
    }
