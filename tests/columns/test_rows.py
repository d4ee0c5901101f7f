"""Orders of rows, and the numbers that occur."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.columns.rows import numbers_in, places_among, sorted_rows

_FAR = 2**63 - 1


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.integers(-3, 3) | st.sampled_from([-_FAR, _FAR]),
            st.integers(-2, 2),
            st.integers(-(2**31), 2**31 - 1) | st.integers(0, 1),
        ),
        unique_by=lambda row: row[2:],
    ),
    st.integers(1, 3),
)
def test_order_of_rows(rows: list[tuple[int, int, int, int]], first: int) -> None:
    """As tuples are sorted, wherever the columns are parted, and where numbers are far apart."""
    columns = [np.array([row[n] for row in rows], np.int64) for n in range(4)]
    columns[3] = columns[3].astype(np.int32)
    found = sorted_rows(columns[:first], columns[first:])
    assert [rows[row] for row in found.tolist()] == sorted(rows)


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9)))
def test_numbers_that_occur(one: list[int], other: list[int]) -> None:
    """Each once, and their places."""
    columns = [np.array(one, np.int64), np.array(other, np.int64)]
    used = numbers_in(columns, 10)
    assert used.tolist() == sorted({*one, *other})
    assert (used[places_among(used, 10)[columns[0]]] == columns[0]).all()
