"""Trees of dataclasses as bytes, and back."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest

from spark_cep.errors import StateError
from spark_cep.packing import pack, unpack
from spark_cep.tree_data import TreeFormat


class Colour(Enum):
    """An enum."""

    RED = "red"


@dataclass(frozen=True)
class Leaf:
    """A value."""

    value: Any
    place: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Pair:
    """Two parts."""

    left: Any
    right: Any


FORMAT = TreeFormat({"Leaf": Leaf, "Pair": Pair, "Colour": Colour})
VALUES = [
    None, True, False, 0, -1, 2**70, 0.0, -0.0, 1.5, float("inf"), "", "\0 ü", Decimal("1.50"),
    Decimal("-0"), date(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 1, UTC),
    datetime(2030, 1, 1), timedelta(days=-1, microseconds=7), timedelta.max, timedelta.min,
    (), (1, (2,)), frozenset({("a",), ("b", "c")}), {"a": (1,), "b": {}}, Colour.RED, Leaf("x"),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_values(value: object) -> None:
    """Of all types, alone and as parts."""
    for tree in (Leaf(value), Leaf((value,)), Pair(value, {"a": value})):
        back = FORMAT.tree_of(FORMAT.bytes_of(tree))
        assert repr(back) == repr(tree)


def test_values_that_are_equal_and_differ() -> None:
    """Stay what they are, though parts that are the same stand there once."""
    tree = (Leaf(0.0), Leaf(-0.0), Leaf(1), Leaf(True), Leaf(1.0), Leaf(Decimal("1.0")))
    assert repr(FORMAT.tree_of(FORMAT.bytes_of(tree))) == repr(tree)


def test_equal_parts_are_written_once() -> None:
    """And are one object afterwards."""
    many = tuple(Pair(Leaf("a" * 100), number) for number in range(100))
    data = FORMAT.bytes_of(many)
    assert len(data) < 2_000
    back = FORMAT.tree_of(data)
    assert back == many
    assert len({id(each.left) for each in back}) == 1


def test_what_takes_no_part_in_equality_is_left_out() -> None:
    """It has its default then."""
    assert FORMAT.tree_of(FORMAT.bytes_of(Leaf(1, place=7))).place == 0


def test_a_deep_tree() -> None:
    """Rows are not nested."""
    tree: Any = None
    for _ in range(300):
        tree = Pair(tree, 1)
    assert FORMAT.tree_of(FORMAT.bytes_of(tree)) == tree


@pytest.mark.parametrize("value", [object(), [1], {1}, b"x", print, Leaf])
def test_what_has_no_place_in_a_tree(value: object) -> None:
    """It is refused where it is written."""
    with pytest.raises(TypeError, match="has no place in a tree"):
        FORMAT.bytes_of(Leaf(value))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xc1", "damaged"),
        (pack({}), "a tree is damaged: ValueError"),
        (pack([2, []]), "in format 2; this version reads 1"),
        (pack([1, []]), "a tree is damaged: IndexError"),
        (pack([1, [["os.system", "true"]]]), "of the unknown kind 'os.system'"),
        (pack([1, [["Pair", 1]]]), "a tree is damaged: TypeError"),
        (pack([1, [["Pair", [1], [0]]]]), "a tree is damaged: IndexError"),
        (pack([1, [["Colour", "blue"]]]), "a tree is damaged: ValueError"),
        (pack([1, [[["Leaf"], 1]]]), "a tree is damaged: TypeError"),
        (pack([1, 7]), "a tree is damaged: TypeError"),
    ],
)
def test_bytes_of_another_making(data: bytes, message: str) -> None:
    """They are refused, and nothing of them is run."""
    with pytest.raises(StateError, match=message):
        FORMAT.tree_of(data)


def test_the_bytes_are_plain_data() -> None:
    """A version and rows; parts before what holds them."""
    tree = Pair(Leaf(1), (Leaf(1), Colour.RED))
    assert unpack(FORMAT.bytes_of(tree)) == [
        1,
        [["Leaf", 1], ["Colour", "red"], ["tuple", [0], [1]], ["Pair", [0], [2]]],
    ]


def test_classes_that_cannot_be_parts() -> None:
    """Not a dataclass, or with a field that is left out before one that is not."""

    @dataclass
    class Mixed:
        place: int = field(default=0, compare=False)
        value: int = 0

    for kind, message in ((int, "int is no dataclass"), (Mixed, "Mixed: a field that is left out")):
        with pytest.raises(TypeError, match=message):
            TreeFormat({"X": kind})
