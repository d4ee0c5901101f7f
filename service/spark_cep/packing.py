"""Values as bytes, and back: MessagePack, with the types of the expression language.

Decimals, timestamps and dates travel as extension types. Nothing here can execute code when bytes
are read. State, packets between tasks and the clock's statements are all packed so.
"""

from __future__ import annotations

import datetime as dt
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import msgpack

from spark_cep.errors import StateError, damaged_state

_DECIMAL, _TIMESTAMP, _DATE, _BIG, _LOCAL = 1, 2, 3, 4, 5
#: What reading bytes that are not of our making can end in.
DAMAGE = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    msgpack.exceptions.UnpackException,
)
#: What no MessagePack begins with.
_SEAL = b"\xc1"
_CHECKSUM = 4
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def _extension(value: Any) -> msgpack.ExtType:
    match value:
        case Decimal():
            return msgpack.ExtType(_DECIMAL, str(value).encode())
        case dt.datetime(tzinfo=None):
            return msgpack.ExtType(_LOCAL, value.isoformat().encode())
        case dt.datetime():
            return msgpack.ExtType(_TIMESTAMP, str((value - _EPOCH) // _MICROSECOND).encode())
        case dt.date():
            return msgpack.ExtType(_DATE, str(value.toordinal()).encode())
        case int():
            return msgpack.ExtType(_BIG, str(value).encode())
    raise StateError(f"cannot store a value of type {type(value).__name__} in the state")


def _from_extension(code: int, data: bytes) -> Any:
    text = data.decode()
    match code:
        case 1:
            return Decimal(text)
        case 2:
            return _EPOCH + int(text) * _MICROSECOND
        case 3:
            return dt.date.fromordinal(int(text))
        case 4:
            return int(text)
        case 5:
            return dt.datetime.fromisoformat(text)  # a local time has no zone
    raise StateError(f"the state holds a value of the unknown kind {code}")


def pack(value: Any) -> bytes:
    """Any value of the state as bytes."""
    return bytes(msgpack.packb(value, default=_extension, use_bin_type=True))


def unpack(data: bytes) -> Any:
    """The value that :func:`pack` wrote; raises StateError when the bytes are not of its making."""
    try:
        return msgpack.unpackb(data, ext_hook=_from_extension, strict_map_key=False)
    except DAMAGE as error:
        raise damaged_state(repr(error)) from error


@contextmanager
def reading_packet() -> Iterator[None]:
    """Raise StateError for a packet between two stages that is not of their making."""
    try:
        yield
    except (*DAMAGE, OSError, MemoryError, NotImplementedError, StopIteration) as error:
        raise StateError(
            f"a packet between two stages is damaged: {error!r}; start the job again"
        ) from error


def sealed(data: bytes) -> bytes:
    """The bytes of an entry of the state, with a checksum in front."""
    return _SEAL + _checksum(data) + data


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(_CHECKSUM, "little")


def unsealed(data: bytes) -> bytes:
    """The bytes that :func:`sealed` was given; raises StateError when they are not the same."""
    inner = data[1 + _CHECKSUM :]
    if data[:1] != _SEAL or data[1 : 1 + _CHECKSUM] != _checksum(inner):
        raise damaged_state("its checksum is another")
    return inner
