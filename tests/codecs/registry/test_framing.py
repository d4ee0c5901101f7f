"""The registry's framing, both forms."""

from __future__ import annotations

import pickle
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.codecs.registry.framing import (
    LARGEST_ID,
    VALUE_HEADER,
    Framed,
    FramingError,
    FramingFault,
    frame,
    locate,
    prefixed,
    read_schema_header,
)
from spark_cep.errors import SchemaError

GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")


@given(st.integers(0, LARGEST_ID), st.binary())
def test_round_trip(schema_id: int, body: bytes) -> None:
    """What is framed is found again, body untouched."""
    value = frame(schema_id, body)
    found = locate(value)
    assert found == (schema_id, body)


@given(st.binary(max_size=20))
def test_any_bytes_are_framed_or_refused(value: bytes) -> None:
    """Whatever comes from a topic ends in an id or in a FramingError."""
    try:
        schema, body = prefixed(value)
        assert value == (
            frame(schema, body) if isinstance(schema, int) else b"\1" + schema.bytes + body
        )
    except FramingError as error:
        assert error.reason in FramingFault


def test_known_bytes() -> None:
    """Magic byte zero, then the id, big endian."""
    assert frame(258, b"xy") == b"\x00\x00\x00\x01\x02xy"


@pytest.mark.parametrize("schema_id", [-1, LARGEST_ID + 1])
def test_id_out_of_range(schema_id: int) -> None:
    """An id that four bytes cannot hold is refused."""
    with pytest.raises(SchemaError, match="four bytes"):
        frame(schema_id, b"")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", FramingFault.EMPTY),
        (b"\x00\x00\x00\x01", FramingFault.WRONG_LENGTH),
        (b"\x01\x00\x00\x00\x01", FramingFault.WRONG_LENGTH),
        (b"\x02\x00\x00\x00\x01", FramingFault.WRONG_MAGIC),
        (b'{"a":1}', FramingFault.WRONG_MAGIC),
    ],
)
def test_not_framed(value: bytes, reason: FramingFault) -> None:
    """Each way of not being framed has its reason, also after pickling."""
    with pytest.raises(FramingError) as caught:
        prefixed(value)
    assert caught.value.reason is reason
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("value", [b'{"a":1}', b" \n[1, 2]"])
def test_json_is_called_json(value: bytes) -> None:
    """A producer that writes JSON into the topic is the usual cause."""
    with pytest.raises(FramingError, match=r"not with 0x00 .* \(it looks like JSON\)$"):
        prefixed(value)


@pytest.mark.parametrize(
    ("header", "schema"),
    [(b"\x00\x00\x00\x00\x07", 7), (b"\x01" + GUID.bytes, GUID)],
)
def test_header_forms(header: bytes, schema: int | UUID) -> None:
    """The header holds an id or a GUID, and then the whole value is the body."""
    headers = [("other", None), (VALUE_HEADER, header)]
    value = b"\x00\x00\x00\x00\x01body"
    assert locate(value, headers) == Framed(schema, value)
    assert locate(header + b"body") == Framed(schema, b"body")


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"", FramingFault.EMPTY),
        (b"\x02abc", FramingFault.WRONG_MAGIC),
        (b"\x00\x00", FramingFault.WRONG_LENGTH),
        (b"\x01" + GUID.bytes + b"x", FramingFault.WRONG_LENGTH),
    ],
)
def test_broken_header(header: bytes, reason: FramingFault) -> None:
    """A broken header is an error, not a reason to look at the value."""
    with pytest.raises(FramingError) as caught:
        read_schema_header(header)
    assert caught.value.reason is reason


def test_last_header_wins() -> None:
    """Of several schema headers the last one counts, as with Kafka's lastHeader."""
    headers = [(VALUE_HEADER, b"\x00\x00\x00\x00\x01"), (VALUE_HEADER, b"\x00\x00\x00\x00\x02")]
    assert locate(b"", headers).schema == 2
