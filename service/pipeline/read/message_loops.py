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

Bytes = NDArray[Any]

FUNCTIONS: Final = (
    "rd_kafka_message_timestamp",
    "rd_kafka_message_headers",
    "rd_kafka_header_get_all",
    "rd_kafka_message_destroy",
)
_TIMESTAMP, _HEADERS, _HEADER, _DESTROY = range(4)

# Where fields of rd_kafka_message_t are, on any system with 64 bits.
_ERROR, _VALUE, _VALUE_SIZE, _KEY, _KEY_SIZE, _OFFSET = 0, 24, 32, 40, 48, 56

#: Of what :func:`sift` finds.
SIZE, LAST, ERRORS = range(3)

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
def offset_of(message: int) -> int:
    """Its offset."""
    offset: int = _word_at(message + _OFFSET)
    return offset


@compiled
def sift(
    messages: I64, first: int, last: int, start: int, end: int, functions: I64,
    errors: I64, found: I64,
) -> int:  # fmt: skip
    """Keep those of ``messages[first:last]`` with an offset from ``start`` to before ``end``, one
    behind the other; returns behind the last one. Errors go to ``errors``, others back to
    librdkafka. ``found``: adds bytes of keys and values kept; the last offset seen; how many errors
    there are."""
    kept = first
    found[ERRORS] = 0
    for at in range(first, last):
        message = messages[at]
        if _int_at(message + _ERROR):
            errors[found[ERRORS]] = message
            found[ERRORS] += 1
            continue
        offset = _word_at(message + _OFFSET)
        found[LAST] = offset
        if offset < start or offset >= end:
            _destroy(functions[_DESTROY], message)
            continue
        found[SIZE] += _word_at(message + _VALUE_SIZE) + _word_at(message + _KEY_SIZE)
        messages[kept] = message
        kept += 1
    return kept


@compiled
def sizes(messages: I64, count: int, functions: I64, scratch: I64, place: int, found: I64) -> None:
    """Bytes of values, keys and headers of the first ``count`` messages, in ``found``.
    ``scratch``: five words, at the address ``place``."""
    found[:3] = 0
    for at in range(count):
        message = messages[at]
        found[0] += _word_at(message + _VALUE_SIZE)
        found[1] += _word_at(message + _KEY_SIZE)
        if _headers(functions[_HEADERS], message, place) == 0:
            number = 0
            while not _header(
                functions[_HEADER], scratch[0], number, place + 8, place + 16, place + 24
            ):
                found[2] += 8 + _length(scratch[1])
                if scratch[2]:
                    found[2] += scratch[3]
                number += 1


@compiled
def _length(text: int) -> int:
    size = 0
    while _byte_at(text + size):
        size += 1
    return size


@compiled
def take(
    messages: I64, count: int, functions: I64, scratch: I64, place: int,
    offsets: I64, times: I64,
    values: int, value_ends: I32, has_value: Bytes,
    keys: int, key_ends: I32, has_key: Bytes,
    headers: int, header_ends: I32, has_headers: Bytes, number_place: int, numbers: I32,
) -> None:  # fmt: skip
    """Copy the first ``count`` messages into columns. ``values``, ``keys`` and ``headers``:
    addresses of as many bytes as :func:`sizes` told. Headers are, for each: the size of its name in
    four bytes, the name, the size of its value (-1: none), the value. ``number_place``: the address
    of ``numbers``, which has room for one."""
    value_end = key_end = header_end = 0
    for at in range(count):
        message = messages[at]
        offsets[at] = _word_at(message + _OFFSET)
        times[at] = _timestamp(functions[_TIMESTAMP], message, place)
        source = _word_at(message + _VALUE)
        size = _word_at(message + _VALUE_SIZE)
        has_value[at] = source != 0
        _copy(values + value_end, source, size)
        value_end += size
        value_ends[at + 1] = value_end
        source = _word_at(message + _KEY)
        size = _word_at(message + _KEY_SIZE)
        has_key[at] = source != 0
        _copy(keys + key_end, source, size)
        key_end += size
        key_ends[at + 1] = key_end
        has_headers[at] = 0
        if _headers(functions[_HEADERS], message, place) == 0:
            number = 0
            while not _header(
                functions[_HEADER], scratch[0], number, place + 8, place + 16, place + 24
            ):
                size = _length(scratch[1])
                numbers[0] = size
                _copy(headers + header_end, number_place, 4)
                _copy(headers + header_end + 4, scratch[1], size)
                header_end += 4 + size
                size = scratch[3] if scratch[2] else -1
                numbers[0] = size
                _copy(headers + header_end, number_place, 4)
                header_end += 4
                if size > 0:
                    _copy(headers + header_end, scratch[2], size)
                    header_end += size
                number += 1
            has_headers[at] = number > 0
        header_ends[at + 1] = header_end


@compiled
def destroy(messages: I64, count: int, functions: I64) -> None:
    """Give the first ``count`` messages back to librdkafka."""
    for at in range(count):
        _destroy(functions[_DESTROY], messages[at])
