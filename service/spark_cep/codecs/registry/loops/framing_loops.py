"""The schema that a record was written with, and the place of its body, as
:mod:`spark_cep.codecs.registry.framing` says it in words."""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import compiled, inlined

#: Framings: of Confluent's registry, in the value or in a header; of AWS Glue's; none.
OF_REGISTRY, OF_GLUE, UNFRAMED = range(3)
#: Bytes in front of a body, and of a schema's id and GUID in a header.
ID_LENGTH, GUID_LENGTH, GLUE_LENGTH = 5, 17, 18
ID_MAGIC, GUID_MAGIC, GLUE_MAGIC = 0, 1, 3
#: Levels of messages in an index of Protobuf.
MOST_LEVELS = 5
#: Compressions of a body in Glue's framing.
PLAIN, ZLIB = 0, 5
#: What is known of the schema of a record: its framing is not the one expected; its id; its GUID.
NOT_FRAMED, BY_ID, BY_GUID = range(3)

_HEADER = np.frombuffer(b"__value_schema_id", np.uint8)


@inlined
def big_endian(data, at, count):
    """``count`` bytes as a number."""
    found = np.uint64(0)
    for place in range(at, at + count):
        found = found << np.uint64(8) | np.uint64(data[place])
    return found


@compiled
def _size(headers, at):
    """Four bytes as a signed number, little endian."""
    found = np.int64(0)
    for place in range(4):
        found |= np.int64(headers[at + place]) << (8 * place)
    return found - (np.int64(1) << 32) if found >> 31 else found


@compiled
def schema_header(headers, at, end):
    """Place and length of the last header of a record that says its schema; -1: there is none."""
    found, length = np.int64(-1), np.int64(0)
    while at < end:
        size = _size(headers, at)
        at += 4
        name = at
        at += max(size, 0)
        same = size == len(_HEADER)
        if same:
            for place in range(len(_HEADER)):
                if headers[name + place] != _HEADER[place]:
                    same = False
                    break
        size = max(_size(headers, at), 0)
        at += 4
        if same:
            found, length = at, size
        at += size
    return found, length


@compiled
def schema_of(data, at, end, framing, headers, header, headers_end):
    """The kind of the name that the schema has of the record that ends at ``end``; its id, or the
    upper and the lower half of its GUID; and the place of its body. ``header``: where its
    headers begin."""
    nothing = np.uint64(0)
    if framing == UNFRAMED:
        return BY_ID, nothing, nothing, at
    body = at
    if framing == OF_GLUE:
        if end - at < GLUE_LENGTH or data[at] != GLUE_MAGIC or data[at + 1] != PLAIN:
            return NOT_FRAMED, nothing, nothing, at
        return BY_GUID, big_endian(data, at + 2, 8), big_endian(data, at + 10, 8), at + 18
    if header < headers_end:
        place, length = schema_header(headers, header, headers_end)
        if place >= 0:
            if length == ID_LENGTH and headers[place] == ID_MAGIC:
                return BY_ID, big_endian(headers, place + 1, 4), nothing, body
            if length == GUID_LENGTH and headers[place] == GUID_MAGIC:
                upper = big_endian(headers, place + 1, 8)
                return BY_GUID, upper, big_endian(headers, place + 9, 8), body
            return NOT_FRAMED, nothing, nothing, body
    if end - at >= ID_LENGTH and data[at] == ID_MAGIC:
        return BY_ID, big_endian(data, at + 1, 4), nothing, at + ID_LENGTH
    if end - at >= GUID_LENGTH and data[at] == GUID_MAGIC:
        upper = big_endian(data, at + 1, 8)
        return BY_GUID, upper, big_endian(data, at + 9, 8), at + GUID_LENGTH
    return NOT_FRAMED, nothing, nothing, body


@compiled
def known_guid(upper, lower, guids):
    """The place of a GUID among ``guids``, which are in order; -1: it is not there."""
    low, high = 0, len(guids)
    while low < high:
        middle = (low + high) // 2
        if guids[middle, 0] < upper or (guids[middle, 0] == upper and guids[middle, 1] < lower):
            low = middle + 1
        else:
            high = middle
    if low < len(guids) and guids[low, 0] == upper and guids[low, 1] == lower:
        return low
    return -1
