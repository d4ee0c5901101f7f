"""The newest lines of a stream, for pages that each have shown a part of them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line, and the kind of what it tells."""

    kind: str
    text: str


class RecentLines:
    """The newest lines, at most ``most``. Safe to use from several threads."""

    def __init__(self, most: int) -> None:
        self._lines: deque[ShownLine] = deque(maxlen=most)
        self._count = 0
        self._lock = threading.Lock()

    def add(self, lines: Iterable[ShownLine]) -> None:
        """Add lines; the oldest go."""
        with self._lock:
            for each in lines:
                self._lines.append(each)
                self._count += 1

    def since(self, count: int) -> tuple[Sequence[ShownLine], int]:
        """The lines that came when there had been ``count``, as far as they are kept; and how many
        there have been now."""
        with self._lock:
            new = min(self._count - count, len(self._lines))
            return list(islice(self._lines, len(self._lines) - new, None)), self._count
