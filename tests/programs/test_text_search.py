"""The compiled search for a constant in texts."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.columns.vectors import Bytes
from spark_cep.pattern.expressions.values.like import Place
from spark_cep.programs.loops.event_mask_loops import border_texts, number_texts


def found(texts: list[bytes], constant: bytes) -> list[bool]:
    """Whether each has the constant."""
    column, pool = Bytes.of(texts), np.frombuffer(constant or b"\0", np.uint8).copy()
    ends, borders = np.array([0, len(constant)]), np.zeros(len(pool), np.int64)
    border_texts(pool, ends, borders)
    wholes = np.stack([column.places, np.zeros(len(texts), np.int64)], axis=1)
    numbered = np.array([[0, 1, int(Place.ANYWHERE), 0]])
    nulls = np.zeros(wholes.shape, np.uint8)
    table = np.full(2, -1, np.int64)
    number_texts(numbered, column.data, pool, ends, borders, table, wholes, nulls)
    return [bool(number == 0) for number in wholes[:, 1]]


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(st.lists(st.text("ab", max_size=12), min_size=1), st.text("ab", max_size=6))
def test_as_python_finds_it(texts: list[str], constant: str) -> None:
    """Of few letters, so that beginnings come again."""
    assert found([each.encode() for each in texts], constant.encode()) == [
        constant in each for each in texts
    ]


def test_time_grows_with_the_text_alone() -> None:
    """Not with the constant, too, however much of it is there at each place."""
    text = b"a" * 2_000_000
    found([b"a"], b"a")
    spent = []
    for length in (2, 20_000):
        began = perf_counter()
        assert found([text], b"a" * length + b"b") == [False]
        spent.append(perf_counter() - began)
    assert spent[1] < 100 * spent[0]
