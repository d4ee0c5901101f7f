"""The schema and the message of a record in Protobuf, and the place of its body, as
:func:`~spark_cep.codecs.registry.framing.message_framing` and
:func:`~spark_cep.codecs.registry.framing.message_of_glue` say it in words; and its numbers."""

from __future__ import annotations

import numpy as np

from spark_cep.codecs.registry.loops.framing_loops import (
    GLUE_LENGTH,
    GLUE_MAGIC,
    GUID_LENGTH,
    GUID_MAGIC,
    ID_LENGTH,
    ID_MAGIC,
    MOST_LEVELS,
    OF_GLUE,
    PLAIN,
    big_endian,
    known_guid,
    schema_header,
)
from spark_cep.columns.compilation import compiled, inlined

#: Messages of a level.
MOST_INDEX = 4_095


@compiled
def varint(data, at, end):
    """A number of at most ten bytes and the place behind it; -1: there is none."""
    value = np.uint64(0)
    for place in range(10):
        if at >= end:
            return value, -1
        byte = data[at]
        at += 1
        value |= np.uint64(byte & 127) << np.uint64(7 * place)
        if byte < 128:
            # Of a tenth byte the lowest bit counts.
            return value, at
    return value, -1


@inlined
def zigzag(value):
    """The signed number that an unsigned one stands for."""
    return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1))


@compiled
def message_index(data, at, end):
    """The index of a message in its file, as one number, and the place behind it; -1: there is
    none."""
    found, behind = varint(data, at, end)
    if behind < 0:
        return np.int64(0), -1
    levels = zigzag(found)
    if levels == 0:
        # Short for the first message.
        return np.int64(1), behind
    if not 0 < levels <= MOST_LEVELS:
        return np.int64(0), -1
    key = np.int64(0)
    for _ in range(levels):
        found, behind = varint(data, behind, end)
        index = zigzag(found)
        if behind < 0 or not 0 <= index < MOST_INDEX:
            return np.int64(0), -1
        key = key << 12 | (index + 1)
    return key, behind


@compiled
def _schema_and_message_of_glue(data, at, end, ids, guids):
    """The values of :func:`schema_and_message` for a record in AWS Glue's framing."""
    if end - at < GLUE_LENGTH or data[at] != GLUE_MAGIC or data[at + 1] != PLAIN:
        return np.int64(-2), np.int64(-1), at
    upper = big_endian(data, at + 2, 8)
    known = np.int64(known_guid(upper, big_endian(data, at + 10, 8), guids))
    if known >= 0:
        known += len(ids)
    number, behind = varint(data, at + GLUE_LENGTH, end)
    if behind < 0 or number >= MOST_INDEX:
        return known, np.int64(-1), at
    # A place in one level.
    return known, np.int64(number) + 1, behind


@compiled
def schema_and_message(data, at, end, framing, headers, header, headers_end, ids, guids):
    """The place of a record's schema among all that are known (-1: it is none of them, -2: there is
    none), the index of its message (-1: there is none), and the place of its body."""
    if framing == OF_GLUE:
        return _schema_and_message_of_glue(data, at, end, ids, guids)
    place, length = np.int64(-1), np.int64(0)
    if header < headers_end:
        place, length = schema_header(headers, header, headers_end)
    in_header = place >= 0
    source = headers if in_header else data
    first = place if in_header else at
    last = place + length if in_header else end
    if last - first >= ID_LENGTH and source[first] == ID_MAGIC:
        wanted = np.int64(big_endian(source, first + 1, 4))
        known = np.searchsorted(ids, wanted)
        if known >= len(ids) or ids[known] != wanted:
            known = np.int64(-1)
        first += ID_LENGTH
    elif last - first >= GUID_LENGTH and source[first] == GUID_MAGIC:
        upper = big_endian(source, first + 1, 8)
        known = np.int64(known_guid(upper, big_endian(source, first + 9, 8), guids))
        if known >= 0:
            known += len(ids)
        first += GUID_LENGTH
    else:
        return np.int64(-2), np.int64(-1), at
    index, behind = message_index(source, first, last)
    if behind < 0:
        return known, np.int64(-1), at
    return known, index, at if in_header else behind
