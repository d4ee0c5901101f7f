"""Control records: what the driver says of time.

They come to key groups through a source of their own, and Spark's offset log keeps them with the
batch, so a batch that runs again sees the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spark_cep.packing import pack, reading_packet, unpack

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """The partitions that hold records and so hold the watermark back until they are read, and a
    lower bound (ms) that the watermark has reached whatever the input says. ``reset_to``: before
    that, the clock is set back to this watermark."""

    partitions: tuple[Partition, ...] = ()
    lower_bound: int | None = None
    reset_to: int | None = None

    def as_json(self) -> dict[str, Any]:
        """For the offset log, which has a reset of the clock elsewhere."""
        return {"partitions": [list(p) for p in self.partitions], "lower_bound": self.lower_bound}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ControlRecord:
        """From the offset log."""
        return cls(tuple((t, int(p)) for t, p in value["partitions"]), value["lower_bound"])

    def encode(self) -> bytes:
        """The packet."""
        return pack({**self.as_json(), "reset_to": self.reset_to})

    @classmethod
    def decode(cls, packet: bytes) -> ControlRecord:
        """Decode the bytes that :meth:`encode` makes. Raises StateError for other bytes."""
        with reading_packet():
            value = unpack(packet)
            return replace(cls.from_json(value), reset_to=value["reset_to"])
