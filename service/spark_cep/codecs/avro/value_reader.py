"""Python values out of Avro bytes, for columns that have no place in arrays of numbers: arrays,
maps, records, wide decimals, bytes, unions of several types.

Only bytes that the compiled loops have gone through come here
(:mod:`spark_cep.codecs.avro.loops.record_bytes`), so their lengths and numbers are sound.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spark_cep.codecs.avro.resolved import (
    Action,
    Fields,
    Items,
    Nothing,
    ResolvedMember,
    Scalar,
    Skipped,
    Symbols,
    Union,
    Unreadable,
)
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_nodes import Node, kind
from spark_cep.columns.representation import from_whole
from spark_cep.pattern.types import BINARY, STRING, DecimalType

#: From bytes and a place in them to the value there and the place behind it.
_Read = Callable[[bytes, int], tuple[Any, int]]

_INT_BITS, _LONG_BITS = (1 << 32) - 1, (1 << 64) - 1
_FIXED_LENGTHS = {"boolean": 1, "float": 4, "double": 8}


@dataclass(frozen=True)
class ValueReader:
    """Reads the values of one column of one writer; picklable."""

    action: Action
    writer: AvroSchema

    def __call__(self, data: bytes) -> Any:
        """The value of a column whose bytes are ``data``."""
        return self._read(data, 0)[0]

    def prepare(self) -> None:
        """Make ready what reads the values; done, it cannot be pickled."""
        self._read  # noqa: B018  its first use makes it

    @cached_property
    def _read(self) -> _Read:
        return _reader(self.action, self.writer)


def _number(data: bytes, at: int, bits: int = _LONG_BITS) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:  # noqa: PLR2004  the last byte of a varint
            value &= bits
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def _reader(action: Action, writer: AvroSchema) -> _Read:
    match action:
        case Nothing():
            return lambda _, at: (None, at)
        case Skipped(written):
            return lambda data, at: (None, _behind(writer, written, data, at))
        case Scalar():
            return _scalar(action)
        case Symbols(symbols):
            return _symbols(symbols)
        case Items(item, is_map):
            return _items(_reader(item, writer), is_map=is_map)
        case Union(branches):
            return _union([_reader(each, writer) for each in branches])
        case ResolvedMember(number, count, value, _):
            return _member(number, count, _reader(value, writer))
        case Fields():
            return _fields(action, writer)
        case Unreadable():
            return _unreadable


def _unreadable(_data: bytes, _at: int) -> tuple[Any, int]:
    raise ValueError("the reader has no place for this value")


def _symbols(symbols: tuple[str | None, ...]) -> _Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        index, at = _number(data, at, _INT_BITS)
        return symbols[index], at

    return read


def _items(item: _Read, *, is_map: bool) -> _Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        values: list[Any] = []
        keys: list[str] = []
        while True:
            count, at = _number(data, at)
            if count == 0:
                return (dict(zip(keys, values, strict=True)) if is_map else values), at
            if count < 0:
                count = -count
                _, at = _number(data, at)
            for _ in range(count):
                if is_map:
                    length, at = _number(data, at)
                    keys.append(data[at : at + length].decode())
                    at += length
                value, at = item(data, at)
                values.append(value)

    return read


def _union(branches: list[_Read]) -> _Read:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        branch, at = _number(data, at, _INT_BITS)
        return branches[branch](data, at)

    return read


def _member(number: int, count: int, value: _Read) -> _Read:
    names = [f"member{each}" for each in range(count)]

    def read(data: bytes, at: int) -> tuple[Any, int]:
        found, at = value(data, at)
        return dict.fromkeys(names) | {names[number]: found}, at

    return read


def _fields(action: Fields, writer: AvroSchema) -> _Read:
    fields = [(each.name, _reader(each.value, writer)) for each in action.fields]
    of_all = dict.fromkeys(action.names) | dict(action.defaults)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        found = dict(of_all)
        for name, field in fields:
            value, at = field(data, at)
            if name is not None:
                found[name] = value
        return found, at

    return read


def _scalar(action: Scalar) -> _Read:
    convert = _conversion(action)
    if action.written in ("int", "long"):
        bits = _INT_BITS if action.written == "int" else _LONG_BITS

        def number(data: bytes, at: int) -> tuple[Any, int]:
            value, at = _number(data, at, bits)
            return convert(value), at

        return number
    if action.written in ("string", "bytes"):

        def text(data: bytes, at: int) -> tuple[Any, int]:
            length, at = _number(data, at)
            return convert(data[at : at + length]), at + length

        return text
    size = action.size or _FIXED_LENGTHS.get(action.written, 0)
    return lambda data, at: (convert(data[at : at + size]), at + size)


def _conversion(action: Scalar) -> Callable[[Any], Any]:
    """From a whole number, or bytes, to the value."""
    of, written = action.type, action.written
    if written in ("int", "long"):
        if action.read == "float":
            return lambda value: float(np.int64(value).astype(np.float32))
        if action.read == "double":
            return float
        micros = action.micros or 1
        return lambda value: from_whole(of)(value * micros)
    if written == "boolean":
        return lambda data: data == b"\1"
    if written in ("float", "double"):
        unpack = struct.Struct("<f" if written == "float" else "<d").unpack
        return lambda data: unpack(data)[0]
    if isinstance(of, DecimalType):
        return lambda data: from_whole(of)(int.from_bytes(data, "big", signed=True))
    if of == STRING:
        return bytes.decode
    assert of == BINARY
    return bytes


def _behind(writer: AvroSchema, node: Node, data: bytes, at: int) -> int:
    """The place behind a value that is not read, which may nest as deeply as it likes."""
    #: Types of values to come, the next one last; with a count, so many items of an array or map.
    waiting: list[tuple[Node, int]] = [(node, 0)]
    while waiting:
        node, left = waiting.pop()
        definition = writer.resolve(node)
        if isinstance(definition, list):
            branch, at = _number(data, at, _INT_BITS)
            waiting.append((definition[branch], 0))
            continue
        what = kind(definition)
        if what in ("array", "map") and isinstance(definition, dict):
            if left == 0:
                left, at = _number(data, at)
                if left < 0:
                    size, at = _number(data, at)
                    at += size
                    waiting.append((node, 0))
                    continue
            if left:
                # Behind the last item stands the next block.
                waiting.append((definition, left - 1))
                if what == "map":
                    length, at = _number(data, at)
                    at += length
                waiting.append((definition["items" if what == "array" else "values"], 0))
        elif what in ("int", "long", "enum"):
            _, at = _number(data, at)
        elif what in ("string", "bytes"):
            length, at = _number(data, at)
            at += length
        elif isinstance(definition, dict) and what == "record":
            waiting += [(field["type"], 0) for field in reversed(definition["fields"])]
        elif isinstance(definition, dict) and what == "fixed":
            at += definition["size"]
        else:
            at += _FIXED_LENGTHS.get(what, 0)
    return at
