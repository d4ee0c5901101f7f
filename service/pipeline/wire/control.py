"""Control records: what the driver says of time, and which rules are paused.

They come to key groups through a source of their own, and Spark's offset log keeps them with the
batch, so a batch that runs again sees the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from service.packing import pack, unpack

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """The partitions that hold records and so hold the watermark back until they are read, a lower
    bound (ms) that the watermark has reached whatever the input says, and the fingerprints of the
    plans that are paused from this batch on (``None``: as before)."""

    partitions: tuple[Partition, ...] = ()
    lower_bound: int | None = None
    paused: tuple[str, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        """For the offset log."""
        paused = None if self.paused is None else list(self.paused)
        partitions = [list(p) for p in self.partitions]
        return {"partitions": partitions, "floor": self.lower_bound, "paused": paused}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ControlRecord:
        """From the offset log."""
        paused = value["paused"]
        return cls(
            tuple((t, int(p)) for t, p in value["partitions"]),
            value["floor"],
            None if paused is None else tuple(paused),
        )

    def encode(self) -> bytes:
        """The packet."""
        return pack(self.as_json())

    @classmethod
    def decode(cls, packet: bytes) -> ControlRecord:
        """What :meth:`encode` was given. Raises StateError for other bytes."""
        return cls.from_json(unpack(packet))
