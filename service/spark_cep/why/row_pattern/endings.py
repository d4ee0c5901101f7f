"""Why ways of an attempt of a rule in SQL ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.durations import format_duration
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.model import Coordinates
from spark_cep.why.account import EndReason, PartialEnding, Passed
from spark_cep.why.probes import Chain, chain_of
from spark_cep.why.row_pattern.held import Labels, UnderWay


@dataclass
class AttemptEndings:
    """Tells why ways are gone after a row, or a deadline. ``before`` and ``after`` are what the key
    held; ``outputs`` is what was found, ``matched`` the matches by id; ``event`` and its
    ``micros``: the row, if there was one."""

    plan: RowPatternPlan
    before: UnderWay
    after: UnderWay
    outputs: Outputs
    matched: Mapping[str, Chain]
    time: int
    event: Coordinates | None
    micros: int

    def of(self, chain: Chain, labels: Labels, passed: Sequence[Passed]) -> PartialEnding:
        """The end of a way; ``passed``: why the next variables could not take the row."""
        mine = self.match_of(chain)
        if mine is not None:
            return PartialEnding(EndReason.MATCH, self.time, "complete", self.event, result=mine)
        within = self.plan.query.within_ms
        if within is not None and self._is_over(within):
            detail = f"WITHIN {format_duration(within)} from its first row is over"
            due, result = self.before.first.time + within, self._timeout_of(chain)
            return PartialEnding(EndReason.WINDOW, due, detail, self.event, result=result)
        preferred = self._preferred(labels)
        limits = [each for each in self.outputs.dead_letters if each.reason == "limit_reached"]
        if preferred is None and limits:
            return PartialEnding(EndReason.LIMIT, self.time, limits[0].detail, self.event)
        if preferred is None and any(each.unknown for each in passed):
            # It could have taken the row.
            preferred = "goes on from here as this one would"
        if preferred is not None:
            detail = f"a way of the attempt that is preferred {preferred}"
            return PartialEnding(EndReason.PREFERRED, self.time, detail, self.event)
        if self.event is None:
            detail = "no row of the key will follow"
        else:
            detail = "the row is none of the variables that may come next in the pattern"
        return PartialEnding(EndReason.CONTIGUITY, self.time, detail, self.event)

    def match_of(self, chain: Chain) -> str | None:
        """The match that has all rows of a way."""
        return next((match_id for match_id, each in self.matched.items() if chain <= each), None)

    def _preferred(self, labels: Labels) -> str | None:
        """Describe a complete way that comes before this one in the same attempt, if there is
        one."""
        ways = list(self.before.ways)
        if labels not in ways:
            # It was the match so far.
            ways.append(labels)
        complete = {f"matched: {match_id}": chain for match_id, chain in self.matched.items()}
        if self.after.found and self.after.start == self.before.start:
            complete["is complete"] = self.after.chain(self.after.found)
        before = [self.before.chain(way) for way in ways[: ways.index(labels)] if way]
        return next(
            (text for text, chain in complete.items() if any(way <= chain for way in before)), None
        )

    def _is_over(self, within: int) -> bool:
        due = self.before.first.time + within
        if self.event is None:
            return due <= self.time
        return (due, self.before.micros) <= (self.time, self.micros)

    def _timeout_of(self, chain: Chain) -> str | None:
        for timeout in self.outputs.timeouts:
            listed = chain_of(self.plan, timeout.steps)
            if listed <= chain and len(listed) + timeout.events_omitted == len(chain):
                return timeout.match_id
        return None
