"""Rows of a stateful operator leave in Arrow batches of bounded size, while they are made."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Row
from spark_cep.pipeline.spark.streamed_rows import MOST_BYTES, batches, by_key

SCHEMA = pa.schema([("kind", pa.int32()), ("packet", pa.binary())])


def test_batches_are_bounded_and_come_early() -> None:
    """A batch comes before the rows behind it are made, holds no more than the bound and one row,
    and nothing is lost."""
    made = 0

    def rows() -> Iterator[Row]:
        nonlocal made
        for number in range(64):
            made += 1
            yield Row(kind=number, packet=bytes(MOST_BYTES // 8))

    found = []
    for batch in batches(rows(), SCHEMA):
        assert batch.nbytes <= MOST_BYTES + MOST_BYTES // 8 + 1_000
        found += batch.column("kind").to_pylist()
        assert made == len(found)
    assert found == list(range(64))


def test_a_large_row_is_alone() -> None:
    """It closes the batch that it is in."""
    rows = [Row(kind=n, packet=bytes(size)) for n, size in enumerate((1, 5 * MOST_BYTES, 1))]
    assert [batch.num_rows for batch in batches(rows, SCHEMA)] == [2, 1]


def test_no_rows_are_an_empty_batch() -> None:
    """PySpark's reader waits for one from each key."""
    (batch,) = batches([], SCHEMA)
    assert (batch.num_rows, batch.schema) == (0, SCHEMA)


def test_rows_of_a_key_come_together_and_one_batch_at_a_time() -> None:
    """Also where a key goes on in the next batch."""
    given = 0

    def arriving() -> Iterator[pa.RecordBatch]:
        nonlocal given
        for labels in ([1, 1], [1, 2], [2, 4]):
            given += 1
            columns = {"label": labels, "packet": [bytes([given])] * 2}
            yield pa.RecordBatch.from_pydict(columns)

    found = []
    for key, rows in by_key(arriving(), [0]):
        taken = [(row.label, row["packet"][0], given) for row in rows]
        assert {label for label, _, _ in taken} == {key[0]}
        assert all(number == seen for _, number, seen in taken)
        found += taken
    assert [row[:2] for row in found] == [(1, 1), (1, 1), (1, 2), (2, 2), (2, 3), (4, 3)]
