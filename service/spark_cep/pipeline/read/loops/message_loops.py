"""Compiled loops over librdkafka's messages: fields of ``rd_kafka_message_t``, as in ``rdkafka.h``,
to columns, without a Python object for each message.

A message is the address of its structure. ``functions`` are addresses of librdkafka's functions,
in the order of :data:`FUNCTIONS`.
"""

from __future__ import annotations

from typing import Any, Final

from numpy.typing import NDArray

from spark_cep.columns.compilation import I64, compiled
from spark_cep.pipeline.librdkafka.loops.native_calls import (
    INT,
    NOTHING,
    WORD,
    byte_at,
    calling,
    copy,
    int_at,
    word_at,
)

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

_timestamp, _headers = calling(WORD, 2), calling(INT, 2)
_header, _destroy = calling(INT, 5), calling(NOTHING, 1)


@compiled
def append(
    messages: I64, first: int, last: int, start: int, end: int, functions: I64,
    scratch: I64, place: int, errors: I64, at: I64, room: I64, enough: int,
    offsets: I64, times: I64,
    values: int, value_ends: I64, has_value: Flags,
    keys: int, key_ends: I64, has_key: Flags,
    headers: int, header_ends: I64, has_headers: Flags,
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
        if int_at(message + _ERROR):
            errors[at[ERRORS]] = message
            at[ERRORS] += 1
            continue
        offset = word_at(message + OFFSET)
        if offset < start or offset >= end:
            at[LAST] = offset
            _destroy(functions[_DESTROY], message)
            continue
        value_size = word_at(message + _VALUE_SIZE)
        key_size = word_at(message + _KEY_SIZE)
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
        source = word_at(message + _VALUE)
        has_value[row] = source != 0
        copy(values + at[VALUE], source, value_size)
        source = word_at(message + _KEY)
        has_key[row] = source != 0
        copy(keys + at[KEY], source, key_size)
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
        copy(to, place + 32, 4)
        copy(to + 4, scratch[1], size)
        to += 4 + size
        size = scratch[3] if scratch[2] else -1
        scratch[4] = size
        copy(to, place + 32, 4)
        to += 4
        if size > 0:
            copy(to, scratch[2], size)
            to += size
        number += 1


@compiled
def _length(text: int) -> int:
    size = 0
    while byte_at(text + size):
        size += 1
    return size


@compiled
def destroy(messages: I64, first: int, last: int, functions: I64) -> None:
    """Give ``messages[first:last]`` back to librdkafka."""
    for number in range(first, last):
        _destroy(functions[_DESTROY], messages[number])
