"""Packets as rows of bounded size.

Between Java and Python, Spark cuts Arrow batches after a number of rows. It can also bound their
bytes, but then adds up all buffers of a batch after each row, which takes a tenth of the job's time
where rows are Kafka records. So a large packet crosses as several rows.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from typing import Final

from spark_cep.errors import StateError

#: Bytes of a packet in one row.
MOST_BYTES: Final = 8 << 10
#: The kind of a row with a part of a packet; kinds of packets are not negative.
FRAGMENT: Final = -1
#: The packet's identity and kind; the number of the part, and of all.
_HEAD: Final = struct.Struct("<16siII")


def fragments(kind: int, packet: bytes) -> Iterator[tuple[int, bytes]]:
    """Kinds and contents of the rows that a packet is."""
    if len(packet) <= MOST_BYTES:
        yield kind, packet
        return
    identity = os.urandom(16)
    count = -(-len(packet) // MOST_BYTES)
    for number in range(count):
        part = packet[number * MOST_BYTES : (number + 1) * MOST_BYTES]
        yield FRAGMENT, _HEAD.pack(identity, kind, number, count) + part


def whole(rows: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Kinds and packets out of kinds and contents of rows, whose order does not matter.

    Raises StateError when a part of a packet is missing.
    """
    incomplete: dict[bytes, dict[int, bytes]] = {}
    for kind, content in rows:
        if kind != FRAGMENT:
            yield kind, content
            continue
        try:
            identity, of, number, count = _HEAD.unpack_from(content)
        except struct.error as error:
            raise StateError(
                f"a part of a packet between two stages is damaged: {error}"
            ) from error
        if number >= count:
            raise StateError(f"a packet between two stages has no part {number} of {count}")
        parts = incomplete.setdefault(identity, {})
        parts[number] = content[_HEAD.size :]
        if len(parts) == count:
            del incomplete[identity]
            yield of, b"".join(parts[place] for place in range(count))
    if incomplete:
        count = len(incomplete)
        which = "1 packet between two stages is" if count == 1 else f"{count} packets are"
        raise StateError(f"{which} not complete")
