"""Versions of rules that drain, in one key group: until when they begin matches, and go on.

A version that a newer one has replaced begins matches with events before the time at which the
newer one begins, which lies behind all events that were read before it came. It is done when the
watermark has passed all of these and nothing that it began lives, and ends at its limit in any
case. All of this is event time, so all key groups, and a batch that runs again, come to the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

from spark_cep.compiler.rule_set import DrainTime, Partitioning
from spark_cep.pipeline.match.watermark import Clock
from spark_cep.pipeline.state.known_rules import KnownRules


@dataclass(slots=True)
class DrainState:
    """One version: the newest event that it may begin a match with, the watermark at which it ends,
    and whether it has. ``until``: the time at which the newer version begins; ``asked``: that for
    which its rule asks, if that was to come when it came."""

    newest: int
    limit: int
    ended: bool = False
    until: int | None = None
    asked: int | None = None

    @classmethod
    def of(cls, time: DrainTime, newest: int, watermark: int) -> DrainState:
        """Make the limit of a version that drains from now on. ``newest``: the last event that was
        read."""
        limit, until = time
        asked = None if until is None or until <= watermark else until
        if limit is None and asked is None:
            return cls(watermark, watermark, ended=True)
        newest = newest if asked is None else max(newest, asked - 1)
        return cls(newest, newest + (limit or 0), until=newest + 1, asked=asked)

    def holds(self, time: DrainTime, watermark: int) -> bool:
        """Return whether it stays as it is where the rule set says ``time`` now: a version that is
        still to begin may get another time, or give way to one that begins sooner."""
        return self.asked is None or self.asked <= watermark or self.asked == time.until_ms


class DrainingRules:
    """The versions that drain in a batch. ``times``: how long each may go on, by fingerprint;
    ``clock``: as it was at the end of the batch before; ``stored``: what :meth:`packed` gave
    then."""

    def __init__(
        self,
        times: Mapping[str, DrainTime],
        clock: Clock,
        rules: KnownRules,
        stored: Mapping[str, Any],
    ) -> None:
        self._rules = rules
        watermark, newest = clock.watermark, clock.newest
        self._states: dict[str, DrainState] = {}
        for fingerprint, time in times.items():
            state = DrainState(*stored[fingerprint]) if fingerprint in stored else None
            if state is None or not state.holds(time, watermark):
                state = DrainState.of(time, newest, watermark)
                if state.ended:
                    rules.end(fingerprint)
            self._states[fingerprint] = state

    def set_back(self, newest: int) -> None:
        """The clock is set back, so that ``newest`` is the last event that was read: versions that
        were to begin behind it begin there, or at the time for which they ask."""
        for state in self._states.values():
            until = newest + 1 if state.asked is None else max(newest + 1, state.asked)
            if state.until is not None and until < state.until:
                state.limit -= state.until - until
                state.newest, state.until = until - 1, until

    def packed(self) -> dict[str, Any]:
        """Plain values."""
        return {fingerprint: list(astuple(state)) for fingerprint, state in self._states.items()}

    def limits(self, partitioning: Partitioning, watermark: int) -> set[int]:
        """Return the ends of versions of a partitioning that the watermark reaches."""
        states = (self._states.get(rule.plan.fingerprint) for rule in partitioning.rules)
        going_on = (each.limit for each in states if each is not None and not each.ended)
        return {limit for limit in going_on if limit <= watermark}

    def end(self, partitioning: Partitioning, watermark: int) -> None:
        """End the partial matches of versions at their limit."""
        for rule in partitioning.rules:
            state = self._states.get(rule.plan.fingerprint)
            if state is not None and not state.ended and state.limit <= watermark:
                state.ended = True
                self._rules.end(rule.plan.fingerprint)

    def early_before(self, partitioning: Partitioning) -> dict[int, int]:
        """Return the bits of events with which versions may begin matches, by the time before which
        they may."""
        bits: dict[int, int] = {}
        for number, rule in enumerate(partitioning.rules):
            state = self._states.get(rule.plan.fingerprint)
            if state is not None and state.until is not None:
                bits[state.until] = bits.get(state.until, 0) | 1 << partitioning.early(number)
        return bits

    def hidden(self, partitioning: Partitioning) -> int:
        """The bits that hide events from versions that have ended."""
        return sum(
            1 << partitioning.unseen(number)
            for number, rule in enumerate(partitioning.rules)
            if (state := self._states.get(rule.plan.fingerprint)) and state.ended
        )

    def done(self, watermark: int) -> list[str]:
        """Fingerprints of the versions that have nothing to do any more."""
        return [
            fingerprint
            for fingerprint, state in self._states.items()
            if state.ended or (state.newest <= watermark and not self._rules.live_of(fingerprint))
        ]
