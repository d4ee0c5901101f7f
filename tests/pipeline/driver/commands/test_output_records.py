"""What a record that commands show is read as, and what is said of one that cannot be read."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro
import pytest

from spark_cep.codecs.registry.framing import frame
from spark_cep.pipeline.driver.commands.output_records import RecordDecoder, UndecodedError
from tests.codecs.registry.test_resolved_schemas import FakeRegistry
from tests.e2e.schemas import record

LOGIN = record("t.Login", user="string", at="long")


class Value:
    """A message with a value and no headers."""

    def __init__(self, value: bytes) -> None:
        self._value = value

    def value(self) -> bytes:
        """The value."""
        return self._value

    def headers(self) -> None:
        """None."""


def decoded(value: bytes) -> Any:
    """The value, with a registry that knows schema 7."""
    message: Any = Value(value)
    return RecordDecoder(FakeRegistry({7: LOGIN})).decoded(message)


def body() -> bytes:
    """A log-in."""
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(LOGIN), {"user": "ann", "at": 1})
    return out.getvalue()


def test_avro_and_json() -> None:
    """By the schema in front, or as it stands."""
    assert decoded(frame(7, body())) == {"user": "ann", "at": 1}
    assert decoded(b' {"n": 1}') == {"n": 1}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (frame(7, body()[:3]), "the body does not fit its schema, 7"),
        (frame(7, b"\x01\x02"), "the body does not fit its schema, 7"),
        (frame(8, body()), "no schema 8"),
        (b"", "the value is empty: no schema id, no body"),
        (b'{"n": ', "it begins like JSON, and is none: "),
    ],
)
def test_what_cannot_be_decoded(value: bytes, why: str) -> None:
    """In words, without the name of a library's exception."""
    with pytest.raises(UndecodedError) as raised:
        decoded(value)
    assert str(raised.value).startswith(why)
    assert "Error" not in str(raised.value)
