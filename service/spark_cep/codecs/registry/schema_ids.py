"""Sets of schema ids as text: ranges, since registries count ids up."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_RANGES: Final = re.compile(r"(\d+(-\d+)?(,\d+(-\d+)?)*)?")
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?")


def ranges_of(ids: Iterable[int]) -> str:
    """The ids as ranges in order, such as ``1-40,45``; no ids are an empty text."""
    ranges: list[list[int]] = []
    for each in sorted(set(ids)):
        if ranges and each == ranges[-1][1] + 1:
            ranges[-1][1] = each
        else:
            ranges.append([each, each])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def ids_in(ranges: str) -> frozenset[int]:
    """Parse the text that :func:`ranges_of` makes. Raises ValueError for another text."""
    if not _RANGES.fullmatch(ranges):
        raise ValueError(f"{ranges[:100]!r} is not ranges of schema ids such as 1-40,45")
    found: set[int] = set()
    for first, last in _RANGE.findall(ranges):
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
