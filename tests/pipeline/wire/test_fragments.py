"""Packets as rows of bounded size."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.errors import StateError
from spark_cep.pipeline.wire.fragments import FRAGMENT, MOST_BYTES, fragments, whole

PACKETS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 5 * MOST_BYTES), st.binary(max_size=3))
)


@given(PACKETS, st.randoms(use_true_random=False))
def test_packets_come_back_whole_in_any_order_of_rows(
    made: list[tuple[int, int, bytes]], source: random.Random
) -> None:
    """A shuffle may mix the rows of several packets."""
    packets = [(kind, bytes(size) + end) for kind, size, end in made]
    rows = [row for packet in packets for row in fragments(*packet)]
    assert all(len(content) <= MOST_BYTES + 64 for _, content in rows)
    assert list(whole(rows)) == packets
    source.shuffle(rows)
    assert sorted(whole(rows)) == sorted(packets)


def test_a_small_packet_is_a_row_as_it_is() -> None:
    """Most packets are small: nothing is copied."""
    packet = bytes(MOST_BYTES)
    ((kind, content),) = fragments(7, packet)
    assert kind == 7
    assert content is packet


@pytest.mark.parametrize("lost", range(3))
def test_a_part_that_is_missing_is_not_passed_over(lost: int) -> None:
    """An incomplete packet is an error, never less output."""
    rows = list(fragments(3, bytes(3 * MOST_BYTES)))
    assert [kind for kind, _ in rows] == [FRAGMENT] * 3
    del rows[lost]
    with pytest.raises(StateError, match="1 packet between two stages is not complete"):
        list(whole(rows))
