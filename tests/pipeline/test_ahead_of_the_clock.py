"""Event times that are further ahead of the time when a batch was planned than they may be."""

from __future__ import annotations

import pyarrow as pa
import pytest

from service.pipeline.crossing import _not_after
from service.pipeline.record_faults import Fault

ROWS = [
    (1_000, Fault.NONE),
    (1_001, Fault.NONE),
    (None, Fault.UNDECODABLE),
    (5_000, Fault.MISSING_KEY),
    (None, Fault.TOMBSTONE),
]


def _batch(rows: list[tuple[int | None, Fault]]) -> pa.RecordBatch:
    times, faults = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(faults, pa.int32()), pa.array(range(len(rows))), pa.array(times, pa.int64())],
        names=["fault", "offset", "time"],
    )


@pytest.mark.parametrize("latest", [None, 5_000, 6_000])
def test_times_up_to_the_last_one_stay(latest: int | None) -> None:
    """The bound itself is allowed; without a bound all are."""
    assert _not_after(latest, _batch(ROWS)).equals(_batch(ROWS))


def test_later_ones_lose_their_time_and_have_the_fault() -> None:
    """So they move no watermark, whatever other fault they had; the others stay as they are."""
    late = (None, Fault.TIME_OUT_OF_BOUNDS)
    expected = [ROWS[0], late, ROWS[2], late, ROWS[4]]
    assert _not_after(1_000, _batch(ROWS)).equals(_batch(expected))


def test_rows_without_any_time() -> None:
    """There is nothing to compare."""
    rows = [ROWS[2], ROWS[4]]
    assert _not_after(1_000, _batch(rows)).equals(_batch(rows))
