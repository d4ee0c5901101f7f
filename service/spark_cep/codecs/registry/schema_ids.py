"""Ids of schemas: numbers that a registry counts up, or GUIDs; and sets of them as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

SchemaId = int | UUID

_GUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_RANGE: Final = re.compile(rf"({_GUID})|(\d+)(?:-(\d+))?")


def in_order(ids: Iterable[SchemaId]) -> tuple[list[int], list[UUID]]:
    """Numbers and GUIDs, both in order and each once."""
    numbers, guids = set[int](), set[UUID]()
    for each in ids:
        if isinstance(each, int):
            numbers.add(each)
        else:
            guids.add(each)
    return sorted(numbers), sorted(guids)


def ids_in_order(ids: Iterable[SchemaId]) -> list[SchemaId]:
    """Numbers, then GUIDs, both in order and each once: as compiled loops number them."""
    numbers, guids = in_order(ids)
    return [*numbers, *guids]


def halves_of(guids: Sequence[UUID]) -> NDArray[np.uint64]:
    """The upper and the lower half of each GUID, as compiled loops compare them."""
    halves = [(each.int >> 64, each.int & (1 << 64) - 1) for each in guids]
    return np.array(halves, np.uint64).reshape(len(guids), 2)


def ranges_of(ids: Iterable[SchemaId]) -> str:
    """The ids in order, numbers as ranges such as ``1-40,45``, then GUIDs; no ids are an empty
    text."""
    numbers, guids = in_order(ids)
    ranges: list[list[int]] = []
    for each in numbers:
        if ranges and each == ranges[-1][1] + 1:
            ranges[-1][1] = each
        else:
            ranges.append([each, each])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in ranges]
    return ",".join([*texts, *map(str, guids)])


def ids_in(ranges: str) -> frozenset[SchemaId]:
    """Parse the text that :func:`ranges_of` makes. Raises ValueError for another text."""
    found: set[SchemaId] = set()
    for part in ranges.split(",") if ranges else ():
        one = _RANGE.fullmatch(part)
        if one is None:
            raise ValueError(
                f"{ranges[:100]!r} is not ranges of schema ids and GUIDs, such as 1-40,45"
            )
        guid, first, last = one.groups()
        found |= {UUID(guid)} if guid else {*range(int(first), int(last or first) + 1)}
    return frozenset(found)


def named(schema: SchemaId) -> str:
    """The id as messages say it."""
    return f"schema {'id' if isinstance(schema, int) else 'GUID'} {schema}"


def schema_id_of(name: str) -> SchemaId:
    """The id whose text is ``name``."""
    return int(name) if name.isdecimal() else UUID(name)
