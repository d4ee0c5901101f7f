"""Versions of rules that drain, in one key group: until when they begin matches, and go on.

A version that a newer one has replaced begins matches with events read before that alone, most of
which wait for the watermark by then. It is done when the watermark has passed all of these and
nothing that it began lives, and ends at its limit in any case. Both are event time, so all key
groups, and a batch that runs again, come to the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from service.compiler.rule_set import Partitioning
from service.pipeline.match.watermark import Clock
from service.pipeline.state.known_rules import KnownRules


@dataclass(slots=True)
class Drain:
    """One version: the newest event that it may begin a match with, the watermark at which it ends,
    and whether it has."""

    newest: int
    limit: int
    ended: bool = False


class Drains:
    """The versions that drain in a batch. ``limits``: how long each may go on, by fingerprint;
    ``clock``: as it was at the end of the batch before; ``stored``: what :meth:`packed` gave
    then."""

    def __init__(
        self, limits: Mapping[str, int], clock: Clock, rules: KnownRules, stored: Mapping[str, Any]
    ) -> None:
        self._rules = rules
        read = (time for time in clock.maxima.values() if time is not None)
        newest = max(read, default=clock.watermark)
        self._drains = {
            fingerprint: Drain(*stored[fingerprint])
            if fingerprint in stored
            else Drain(newest, newest + limit)
            for fingerprint, limit in limits.items()
        }

    def packed(self) -> dict[str, Any]:
        """Plain values."""
        return {fingerprint: list(astuple(drain)) for fingerprint, drain in self._drains.items()}

    def limits(self, partitioning: Partitioning, watermark: int) -> set[int]:
        """Where versions of a partitioning end that the watermark reaches."""
        drains = (self._drains.get(rule.plan.fingerprint) for rule in partitioning.rules)
        going_on = (each.limit for each in drains if each is not None and not each.ended)
        return {limit for limit in going_on if limit <= watermark}

    def end(self, partitioning: Partitioning, watermark: int) -> None:
        """What lives of versions at their limit ends."""
        for rule in partitioning.rules:
            drain = self._drains.get(rule.plan.fingerprint)
            if drain is not None and not drain.ended and drain.limit <= watermark:
                drain.ended = True
                self._rules.end(rule.plan.fingerprint)

    def hidden(self, partitioning: Partitioning) -> int:
        """The bits that hide events from versions that have ended."""
        return sum(
            1 << partitioning.unseen(number)
            for number, rule in enumerate(partitioning.rules)
            if (drain := self._drains.get(rule.plan.fingerprint)) and drain.ended
        )

    def done(self, watermark: int) -> list[str]:
        """Fingerprints of the versions that have nothing to do any more."""
        return [
            fingerprint
            for fingerprint, drain in self._drains.items()
            if drain.ended or (drain.newest <= watermark and not self._rules.live_of(fingerprint))
        ]
