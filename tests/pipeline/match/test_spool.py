"""A batch of a key group: in memory up to a bound, then in a file, and taken up in slices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.matcher.findings.partial import FOREVER
from spark_cep.pipeline.match.spool import Spool, slices


def numbered(number: int, packet: bytes) -> list[tuple[int, bytes]]:
    """A packet as its only item."""
    return [(number, packet)]


@given(
    st.lists(st.tuples(st.integers(0, 2) | st.integers(0, 2**32 - 1), st.binary(max_size=50))),
    st.integers(0, 200),
)
def test_everything_comes_back(packets: list[tuple[int, bytes]], in_memory: int) -> None:
    """Whatever fits into memory, each time that it is asked for, packets added later included."""
    spool = Spool(numbered, in_memory)
    for count, packet in enumerate(packets, 1):
        spool.add(*packet)
        if count % 3 == 0:
            assert sorted(spool) == sorted(packets[:count])
    assert sorted(spool.items(1)) == sorted(packet for packet in packets if packet[0] == 1)
    assert sorted(spool) == sorted(spool) == sorted(packets)
    spool.close()
    assert list(spool) == []


def test_beyond_the_bound_packets_are_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the first of Spark's folders; memory holds no more than the bound."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    spool = Spool(numbered, 1_000)
    for number in range(100):
        spool.add(number, bytes(100))
    assert spool._file is not None
    assert sum(len(packet) for _, packet in spool._held) == 1_000
    assert Path(f"/proc/self/fd/{spool._file.fileno()}").readlink().is_relative_to(tmp_path)
    assert list(tmp_path.iterdir()) == []  # it has no name, so that it never stays behind
    spool.close()


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), min_size=1), st.integers(1, 60))
def test_slices_are_of_a_size(events: list[tuple[int, int]], most: int) -> None:
    """Each event is in one slice, those of a time together, and but for the first and last time of
    a slice it is below the bound."""
    times, sizes = (np.array(each, np.int64) for each in zip(*events, strict=True))
    ends = slices(times, sizes, most)
    assert ends == sorted(set(ends))
    assert ends[-1] == FOREVER
    after = -1
    for end in ends:
        here = (times > after) & (times <= end)
        assert here.any()
        inner = here & (times > times[here].min()) & (times < times[here].max())
        assert sizes[inner].sum() <= most
        after = end


def test_little_is_one_slice() -> None:
    """No time is spent on what fits."""
    assert slices(np.array([3, 1]), np.array([5, 5]), 10) == [FOREVER]
