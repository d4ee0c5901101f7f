"""Texts by number: equal ones have the same, their order is that of the texts, more can come."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.columns.texts import Texts
from spark_cep.columns.vectors import Bytes

WORDS = st.sampled_from(["", "a", "b", "ab", "ü", "z", "𝄞", "\ufffd"]) | st.text(max_size=3)


@settings(max_examples=150, derandomize=True, database=None)
@given(
    st.lists(st.lists(st.none() | WORDS, max_size=5), max_size=3),
    st.lists(WORDS, max_size=3),
    st.lists(WORDS, max_size=4),
    st.booleans(),
)
def test_numbers_of_texts(
    columns: list[list[str | None]], constants: list[str], more: list[str], ordered: bool
) -> None:
    """In columns and constants, and of texts that come later, new or not."""
    given_columns = [
        Bytes.of([None if text is None else text.encode() for text in column]) for column in columns
    ]
    texts = Texts(given_columns, constants, ordered=ordered)
    numbers: dict[str, int] = {}
    given: list[Sequence[str | None]] = [*columns, constants]
    for column, found in zip(given, [*texts.columns, texts.constants], strict=True):
        assert len(column) == len(found)
        for text, number in zip(column, found.tolist(), strict=True):
            if text is not None:
                assert numbers.setdefault(text, number) == number
    assert sorted(numbers.values()) == list(range(len(numbers)))
    if ordered:
        # The order of UTF-8 is that of code points.
        assert [text for text, _ in sorted(numbers.items(), key=lambda one: one[1])] == sorted(
            numbers
        )
    first_new = len(numbers)
    for text in more:
        number = texts.number(text)
        assert text in numbers or number >= first_new
        assert numbers.setdefault(text, number) == number
    assert {text: texts.number(text) for text in numbers} == numbers
    assert {texts.text(number): number for number in numbers.values()} == numbers
