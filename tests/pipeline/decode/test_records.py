"""Kafka's records on their way from Spark: large ones in pieces, which come together again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from service.pipeline.decode import pack
from service.pipeline.decode.records import PIECE, KafkaRecords, columns_of

SCHEMA = pa.schema(
    [
        ("partition", pa.int32()), ("offset", pa.int64()), ("kafka_time", pa.int64()),
        ("topic", pa.string()), ("value", pa.binary()), ("record_key", pa.binary()),
        ("headers", pa.string()),
    ]
)  # fmt: skip
SIZES = st.none() | st.integers(0, 4) | st.integers(PIECE - 2, PIECE + 2) | st.just(5 * PIECE)
RECORDS = st.lists(st.tuples(SIZES, SIZES, SIZES), min_size=1, max_size=12)


def content(size: int | None, number: int) -> bytes | None:
    """Bytes that differ from record to record, and within one."""
    if size is None:
        return None
    return (f"{number}." * (size // 2 + 1)).encode()[:size]


def rows_of_record(number: int, sizes: tuple[int | None, ...]) -> Iterator[dict[str, Any]]:
    """What Spark makes of one record."""
    value, key, text = (content(size, number) for size in sizes)
    most = max(size or 0 for size in sizes)
    for start in range(0, max(most, 1), PIECE):
        part = slice(start, start + PIECE)
        yield {
            "partition": 3, "offset": 10 * number, "kafka_time": number, "topic": "t",
            "value": None if value is None else value[part],
            "record_key": None if key is None else key[part],
            "headers": None if text is None else text[part].decode(),
        }  # fmt: skip


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def read(batches: list[pa.RecordBatch], topic: str | None) -> list[dict[str, Any]]:
    """The records, whatever the batches that are looked at together."""
    found = []
    for several in pack._together(batches):
        records = KafkaRecords(several, topic)
        everything = np.arange(len(records.present))
        table = pa.RecordBatch.from_pydict(records.rows(everything, np.ones(len(everything), bool)))
        found += table.to_pylist()
    return found


@given(RECORDS, st.lists(st.integers(0, 60)), st.booleans(), st.integers(1, 8))
def test_pieces_come_together(
    sizes: list[tuple[int | None, ...]], cuts: list[int], one_topic: bool, together: int
) -> None:
    """However Spark cuts batches, and however many of them are looked at together."""
    made = [row for number, each in enumerate(sizes) for row in rows_of_record(number, each)]
    bounds = sorted({0, len(made), *(cut for cut in cuts if cut < len(made))})
    batches = [pa.RecordBatch.from_pylist(made[a:b], schema=SCHEMA) for a, b in pairwise(bounds)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack, "_ROWS_TOGETHER", together)
        found = read(batches, "t" if one_topic else None)
    wanted = [
        (10 * number, *(content(size, number) for size in each))
        for number, each in enumerate(sizes)
    ]
    assert [
        (row["offset"], row["value"], row["record_key"], _encoded(row["headers"])) for row in found
    ] == wanted
    assert [row["size"] for row in found] == [(v or 0) + (k or 0) for v, k, _ in sizes]
    assert {row["topic"] for row in found} == {"t"}


def test_what_is_looked_at_together_is_bounded_by_a_record() -> None:
    """Also where each batch ends within a record."""
    made = [row for number in range(40) for row in rows_of_record(number, (PIECE * 3, None, None))]
    batches = [
        pa.RecordBatch.from_pylist(made[start : start + 4], schema=SCHEMA)
        for start in range(0, len(made), 4)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack, "_ROWS_TOGETHER", 4)
        several = [sum(batch.num_rows for batch in each) for each in pack._together(batches)]
    assert sum(several) == 120
    assert max(several) <= 4 + 3


@pytest.mark.spark
def test_spark_cuts_records_into_pieces(spark: SparkSession) -> None:
    """Values, keys and headers, of any size, none of them at times; text by its characters."""
    large = bytes(range(256)) * 40
    headers = [("é", b"x" * 3 * PIECE), ("none", None)]
    records = [
        ("t", 0, 1, datetime.fromtimestamp(1, UTC), b"v", b"k", None),
        ("t", 0, 2, datetime.fromtimestamp(2, UTC), None, None, []),
        ("t", 0, 5, datetime.fromtimestamp(3, UTC), large, None, None),
        ("t", 1, 5, datetime.fromtimestamp(4, UTC), b"", large, headers),
        ("u", 1, 6, datetime.fromtimestamp(5, UTC), None, b"", headers[:1]),
    ]
    frame = spark.createDataFrame(
        records,
        "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, value BINARY,"
        " key BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>",
    ).coalesce(1)
    for topic in (None, "t"):
        batches = columns_of(frame, topic).toArrow().to_batches()
        assert sum(batch.num_rows for batch in batches) == 3 + 5 + 5 + 5 - 1
        largest = (len(each or b"") for batch in batches for each in batch["value"].to_pylist())
        assert max(largest) == PIECE
        found = read(batches, topic)
        assert [(row["offset"], row["value"], row["record_key"]) for row in found] == [
            (offset, value, key) for _, _, offset, _, value, key, _ in records
        ]
        assert [row["kafka_time"] for row in found] == [1000, 2000, 3000, 4000, 5000]
        assert [row["headers"] is None for row in found] == [True, True, True, False, False]
        assert found[3]["headers"].startswith('[{"key":"é","value":"eHh4')
