"""The events that a timeout lists, by definition."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

AT_EACH_END = 50


def listed(steps: Sequence[Hashable]) -> list[int]:
    """The places of those events, given the step of each: of each step the first and the last."""
    kept: list[int] = []
    for step in dict.fromkeys(steps):
        places = [place for place, each in enumerate(steps) if each == step]
        kept += {*places[:AT_EACH_END], *places[-AT_EACH_END:]}
    return sorted(kept)
