"""Texts by number: equal ones have the same, their order is that of the texts, more can come."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.columns.loops.keyed_hash import keyed_hash
from spark_cep.columns.loops.text_hash import SEED, place_hashes
from spark_cep.columns.texts import Texts, TextSet
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


@settings(max_examples=100, derandomize=True, database=None)
@given(st.lists(WORDS, max_size=8))
def test_different_texts(texts: list[str]) -> None:
    """Each once, in the order in which they come first."""
    column = Bytes.of([text.encode() for text in texts])
    assert TextSet(column).different() == [*dict.fromkeys(texts)]


def _colliding(count: int) -> list[bytes]:
    """Distinct texts of 16 bytes that have the same XXH64: the second half of each takes back what
    the first one makes of the hash."""
    p1, p2, p4 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x85EBCA77C2B2AE63
    seed_and_length = SEED + 0x27D4EB2F165667C5 + 16
    found = []
    for first in range(count):
        # As `text_hash` takes in a word.
        hashed = seed_and_length ^ _rotated(first * p2, 31) * p1 % 2**64
        hashed = (_rotated(hashed, 27) * p1 + p4) % 2**64
        second = _rotated(hashed * pow(p1, -1, 2**64), 64 - 31) * pow(p2, -1, 2**64) % 2**64
        found.append(first.to_bytes(8, "little") + second.to_bytes(8, "little"))
    return found


def _rotated(value: int, bits: int) -> int:
    value %= 2**64
    return (value << bits | value >> (64 - bits)) % 2**64


def test_texts_of_one_stable_hash_are_found_at_once() -> None:
    """Keys that somebody chose so that they have one hash take no more steps than others."""
    crafted = Bytes.of(_colliding(5000))
    hashes = np.zeros(len(crafted), np.int64)
    place_hashes(*crafted.pool, crafted.nulls, hashes)
    assert len(set(hashes.tolist())) == 1
    texts = TextSet(crafted)
    assert texts.numbers.tolist() == texts.find(crafted).tolist() == list(range(5000))
    free = np.flatnonzero(texts.table < 0)
    assert np.diff(free).max() - 1 < 50, "places in a row that a look-up may have to pass"


def test_the_hash_of_tables_is_siphash() -> None:
    """The one that Python has for bytes, whose secret is 0 where PYTHONHASHSEED is."""
    texts = [bytes(range(200, 200 - length, -1)) for length in range(1, 50)]
    asked = f"import sys; print(sys.hash_info.algorithm, *map(hash, {texts}))"
    algorithm, *wanted = subprocess.run(
        [sys.executable, "-c", asked],
        env={"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert algorithm == "siphash13"
    secret = np.zeros(2, np.uint64)
    arrays = [np.frombuffer(text, np.uint8).copy() for text in texts]
    found = [np.uint64(keyed_hash(secret, each, 0, len(each))).astype(np.int64) for each in arrays]
    assert found == list(map(int, wanted))
    other = np.array([1, 0], np.uint64)
    assert keyed_hash(other, arrays[9], 0, 10) != keyed_hash(secret, arrays[9], 0, 10)
