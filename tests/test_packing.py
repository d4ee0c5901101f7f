"""Values and seals of stored state: what is written is read back, and damage is said."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.errors import StateError
from spark_cep.packing import pack, sealed, unpack, unsealed

moments = st.datetimes(timezones=st.just(dt.UTC))
plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.decimals(allow_nan=False)
    | moments
    | st.dates()
)
values = st.recursive(
    plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5
)

property_of = settings(max_examples=200, derandomize=True, database=None)


@property_of
@given(values)
def test_values(value: Any) -> None:
    """Values of every type of the expression language, as they were."""
    assert unpack(pack(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        Decimal("1.50"),
        Decimal("-0E-38"),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC),
        dt.date(1, 1, 1),
        1 << 64,
        -(1 << 63) - 1,
        [{"a": 1 << 200, "b": [True, None]}],
        {1: 1 << 70},
    ],
)
def test_values_with_an_own_form(value: Any) -> None:
    """Digits, microseconds and big numbers are kept exactly, and so are the types."""
    read = unpack(pack(value))
    assert read == value
    assert repr(read) == repr(value)


def test_a_value_of_another_type() -> None:
    """It is named when the state is written, not when it is read."""
    with pytest.raises(StateError, match="a value of type complex"):
        pack([1j])


@property_of
@given(st.binary(max_size=40), st.data())
def test_a_seal(values: bytes, data: st.DataObject) -> None:
    """Sealed bytes are read back; with any bit changed, or cut short, they are not taken."""
    whole = sealed(pack([values]))
    assert unsealed(whole) == pack([values])
    bit = data.draw(st.integers(0, len(whole) * 8 - 1))
    changed = bytearray(whole)
    changed[bit // 8] ^= 1 << bit % 8
    for damaged in (bytes(changed), whole[: data.draw(st.integers(0, len(whole) - 1))]):
        with pytest.raises(StateError):
            unpack(unsealed(damaged))


def test_bytes_without_a_seal() -> None:
    """Bytes that nothing sealed are not taken for an entry."""
    with pytest.raises(StateError, match="its checksum is another"):
        unsealed(pack({"format": 2}))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        pack([1])[:-1],
        msgpack.packb(msgpack.ExtType(1, b"x")),
        msgpack.packb(msgpack.ExtType(2, b"9" * 40)),
        msgpack.packb(msgpack.ExtType(3, b"0")),
        msgpack.packb(msgpack.ExtType(99, b"")),
    ],
)
def test_bytes_of_no_value(data: bytes) -> None:
    """What is no value is a StateError."""
    with pytest.raises(StateError):
        unpack(data)
