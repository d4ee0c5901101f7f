"""Sets of schema ids as ranges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.codecs.registry.schema_ids import ids_in, ranges_of


@given(st.frozensets(st.integers(1, 60)))
def test_what_was_written_is_read(ids: frozenset[int]) -> None:
    """Any set, the empty one too."""
    assert ids_in(ranges_of(ids)) == ids


def test_neighbours_are_one_range() -> None:
    """Registries count up: a thousand versions take a few characters."""
    assert ranges_of([45, *range(1, 1_001), 2_000, 1_999]) == "1-1000,1999-2000"
    assert ranges_of([]) == ""


@pytest.mark.parametrize("text", ["x", "1-", "1--2"])
def test_another_text_is_refused(text: str) -> None:
    """It is not taken for a set."""
    with pytest.raises(ValueError, match="ranges of schema ids"):
        ids_in(text)
