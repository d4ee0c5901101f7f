"""Numbers of topics, for records that do not name their type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TopicNumbers:
    """The number of each topic, such as that of its record type; of others by ``patterns`` of their
    names."""

    numbers: Mapping[str, int]
    patterns: tuple[tuple[str, int], ...] = ()

    def number(self, topic: str) -> int | None:
        """The number of a topic."""
        if topic in self.numbers:
            return self.numbers[topic]
        found = (number for pattern, number in self.patterns if re.fullmatch(pattern, topic))
        return next(found, None)
