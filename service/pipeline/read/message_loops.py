"""Compiled loops over librdkafka's messages: fields of ``rd_kafka_message_t``, as in ``rdkafka.h``,
to columns, without a Python object for each message.

A message is the address of its structure. ``functions`` are addresses of librdkafka's functions,
in the order of :data:`FUNCTIONS`.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from service.matcher.columnar.compilation import I32, I64, compiled

Flags = NDArray[Any]

FUNCTIONS: Final = (
    "rd_kafka_message_timestamp",
    "rd_kafka_message_headers",
    "rd_kafka_header_get_all",
    "rd_kafka_message_destroy",
)
_TIMESTAMP, _HEADERS, _HEADER, _DESTROY = range(4)

# Where fields of rd_kafka_message_t are, on any system with 64 bits.
_ERROR, _VALUE, _VALUE_SIZE, _KEY, _KEY_SIZE, OFFSET = 0, 24, 32, 40, 48, 56

#: Where :func:`append` has come to: rows and bytes that are there, the offset it saw last, errors,
#: and how many bytes there have to be room for with the next one.
ROWS, VALUE, KEY, HEADERS, LAST, ERRORS, NEEDED_VALUE, NEEDED_KEY, NEEDED_HEADERS = range(9)

_byte, _int, _word = (ir.IntType(bits) for bits in (8, 32, 64))
_nothing = ir.VoidType()


def _native(result: Any, count: int, code: Any) -> Any:
    """What compiled loops call with ``count`` words: the instructions of ``code``."""

    @intrinsic
    def made(_context: Any, *_arguments: Any) -> Any:
        def instructions(_: Any, builder: Any, _signature: Any, given: Any) -> Any:
            unpacked = cgutils.unpack_tuple(builder, given[0], count)  # type: ignore[no-untyped-call]
            return code(builder, *unpacked)

        words = types.UniTuple(types.int64, count)  # type: ignore[no-untyped-call]
        return result(words), instructions

    return made


def _reading(kind: Any) -> Any:
    def code(builder: Any, address: Any) -> Any:
        found = builder.load(builder.inttoptr(address, kind.as_pointer()))
        return found if kind is _word else builder.sext(found, _word)

    return _native(types.int64, 1, code)


def _calling(returned: Any, count: int) -> Any:
    """Calls the function at an address with ``count`` words."""

    def code(builder: Any, function: Any, *given: Any) -> Any:
        kind = ir.FunctionType(returned, [_word] * count)
        found = builder.call(builder.inttoptr(function, kind.as_pointer()), given)
        return builder.sext(found, _word) if returned is _int else found

    return _native(types.void if returned is _nothing else types.int64, 1 + count, code)


def _copying(builder: Any, to: Any, source: Any, size: Any) -> Any:
    target, origin = (builder.inttoptr(each, _byte.as_pointer()) for each in (to, source))
    cgutils.raw_memcpy(builder, target, origin, size, 1)  # type: ignore[no-untyped-call]


_word_at, _int_at, _byte_at = map(_reading, (_word, _int, _byte))
_copy = _native(types.void, 3, _copying)
_timestamp, _headers = _calling(_word, 2), _calling(_int, 2)
_header, _destroy = _calling(_int, 5), _calling(_nothing, 1)


@compiled
def append(
    messages: I64, first: int, last: int, start: int, end: int, functions: I64,
    scratch: I64, place: int, errors: I64, at: I64, room: I64, enough: int,
    offsets: I64, times: I64,
    values: int, value_ends: I32, has_value: Flags,
    keys: int, key_ends: I32, has_key: Flags,
    headers: int, header_ends: I32, has_headers: Flags,
) -> int:  # fmt: skip
    """Copy those of ``messages[first:last]`` with an offset from ``start`` to before ``end`` into
    columns, and give them back to librdkafka: one pass, while they are in the processor's cache.
    Returns the number of the first one for which there is no room, or behind ``enough`` bytes.

    ``at``: see :data:`ROWS` and those behind it; ``room``: as many rows and bytes as fit.
    ``errors`` has room for all messages. ``values``, ``keys`` and ``headers`` are addresses.
    Headers are, for each: the size of its name in four bytes, the name, the size of its value (-1:
    none), the value. ``scratch``: five words, at the address ``place``."""
    for number in range(first, last):
        message = messages[number]
        if _int_at(message + _ERROR):
            errors[at[ERRORS]] = message
            at[ERRORS] += 1
            continue
        offset = _word_at(message + OFFSET)
        if offset < start or offset >= end:
            at[LAST] = offset
            _destroy(functions[_DESTROY], message)
            continue
        value_size = _word_at(message + _VALUE_SIZE)
        key_size = _word_at(message + _KEY_SIZE)
        with_headers = _headers(functions[_HEADERS], message, place) == 0
        header_size = _headers_size(functions, scratch, place) if with_headers else 0
        row = at[ROWS]
        if at[VALUE] + at[KEY] + at[HEADERS] >= enough:
            return number
        at[NEEDED_VALUE] = at[VALUE] + value_size
        at[NEEDED_KEY] = at[KEY] + key_size
        at[NEEDED_HEADERS] = at[HEADERS] + header_size
        if (
            row >= room[ROWS]
            or at[NEEDED_VALUE] > room[VALUE]
            or at[NEEDED_KEY] > room[KEY]
            or at[NEEDED_HEADERS] > room[HEADERS]
        ):
            return number
        at[LAST] = offset
        offsets[row] = offset
        times[row] = _timestamp(functions[_TIMESTAMP], message, place + 32)
        source = _word_at(message + _VALUE)
        has_value[row] = source != 0
        _copy(values + at[VALUE], source, value_size)
        source = _word_at(message + _KEY)
        has_key[row] = source != 0
        _copy(keys + at[KEY], source, key_size)
        has_headers[row] = header_size > 0
        if header_size:
            _copy_headers(functions, scratch, place, headers + at[HEADERS])
        at[ROWS] = row + 1
        at[VALUE] = at[NEEDED_VALUE]
        at[KEY] = at[NEEDED_KEY]
        at[HEADERS] = at[NEEDED_HEADERS]
        value_ends[row + 1] = at[VALUE]
        key_ends[row + 1] = at[KEY]
        header_ends[row + 1] = at[HEADERS]
        _destroy(functions[_DESTROY], message)
    return last


@compiled
def _headers_size(functions: I64, scratch: I64, place: int) -> int:
    """Bytes that the headers take, of which ``scratch`` has the address."""
    size = number = 0
    while not _header(functions[_HEADER], scratch[0], number, place + 8, place + 16, place + 24):
        size += 8 + _length(scratch[1])
        if scratch[2]:
            size += scratch[3]
        number += 1
    return size


@compiled
def _copy_headers(functions: I64, scratch: I64, place: int, to: int) -> None:
    number = 0
    while not _header(functions[_HEADER], scratch[0], number, place + 8, place + 16, place + 24):
        size = _length(scratch[1])
        scratch[4] = size
        _copy(to, place + 32, 4)
        _copy(to + 4, scratch[1], size)
        to += 4 + size
        size = scratch[3] if scratch[2] else -1
        scratch[4] = size
        _copy(to, place + 32, 4)
        to += 4
        if size > 0:
            _copy(to, scratch[2], size)
            to += size
        number += 1


@compiled
def _length(text: int) -> int:
    size = 0
    while _byte_at(text + size):
        size += 1
    return size


@compiled
def destroy(messages: I64, first: int, last: int, functions: I64) -> None:
    """Give ``messages[first:last]`` back to librdkafka."""
    for number in range(first, last):
        _destroy(functions[_DESTROY], messages[number])
