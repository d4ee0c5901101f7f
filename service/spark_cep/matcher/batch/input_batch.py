"""Events of many keys on their way to the rules, and which of them the watermark has reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.columns.rows import numbers_in, places_among
from spark_cep.columns.texts import with_more
from spark_cep.columns.vectors import Bytes, no_numbers, no_texts, texts_of
from spark_cep.matcher.batch.events import EventTable, Names, SlotType, together
from spark_cep.model import Event

#: Of an event: number, key, conditions, time, coordinates, record type.
_EVENT_BYTES = 64


@dataclass(slots=True)
class InputBatch:
    """Events with their keys and what is true of them: ``keys`` and ``masks`` (sets of true
    conditions) hold each once, ``key`` and ``mask`` are places in them."""

    keys: Bytes = field(default_factory=no_texts)
    masks: list[int] = field(default_factory=list)
    key: I64 = field(default_factory=no_numbers)
    mask: I64 = field(default_factory=no_numbers)
    events: EventTable = field(default_factory=EventTable.empty)

    @classmethod
    def of(
        cls,
        events: Mapping[str | None, Sequence[Event]],
        names: Names,
        slots: Sequence[SlotType],
    ) -> InputBatch:
        """These events by key."""
        masks: dict[int, int] = {}
        every = [event for mine in events.values() for event in mine]
        mask = [masks.setdefault(event.bits, len(masks)) for event in every]
        counts = [len(mine) for mine in events.values()]
        return cls(
            texts_of(events),
            list(masks),
            np.repeat(np.arange(len(counts)), counts),
            np.array(mask, np.int64),
            EventTable.of(every, names, slots),
        )

    def __len__(self) -> int:
        return len(self.events)

    @property
    def size(self) -> int:
        """About the bytes of keys and events, without those of texts in columns."""
        columns = self.events.columns or ()
        return int(self.keys.lengths.sum()) + len(self) * (_EVENT_BYTES + 8 * len(columns))

    def take(self, rows: I64) -> InputBatch:
        """The events of these rows, with the keys and masks that they use."""
        key, mask = self.key[rows], self.mask[rows]
        keys = numbers_in([key], len(self.keys))
        masks = numbers_in([mask], len(self.masks))
        return InputBatch(
            self.keys.take(keys),
            [self.masks[number] for number in masks.tolist()],
            places_among(keys, len(self.keys))[key],
            places_among(masks, len(self.masks))[mask],
            self.events.take(rows),
        )


def batches_together(parts: Sequence[InputBatch]) -> InputBatch:
    """Several as one, in this order."""
    if len(parts) == 1:
        return parts[0]
    keys = no_texts()
    masks: dict[int, int] = {}
    key, mask = [no_numbers()], [no_numbers()]
    for part in parts:
        keys, key_numbers = with_more(keys, part.keys)
        mask_numbers = [masks.setdefault(each, len(masks)) for each in part.masks]
        key.append(key_numbers[part.key])
        mask.append(np.array(mask_numbers, np.int64)[part.mask])
    return InputBatch(
        keys,
        list(masks),
        np.concatenate(key),
        np.concatenate(mask),
        together([part.events for part in parts]),
    )


def reached(batch: InputBatch, watermark: int) -> tuple[InputBatch, InputBatch]:
    """The events that the watermark has reached, and the others, sorted by time."""
    ahead = np.flatnonzero(batch.events.time > watermark)
    if not len(ahead):
        return batch, InputBatch()
    ahead = ahead[np.argsort(batch.events.time[ahead], kind="stable")]
    return batch.take(np.flatnonzero(batch.events.time <= watermark)), batch.take(ahead)
