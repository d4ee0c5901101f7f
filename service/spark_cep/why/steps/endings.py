"""Why partial matches of a rule of steps that should have gone on, or have matched, did not: skip
strategy, limits and cooldown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_cep.compiler.explain.wording import skip_in_words
from spark_cep.compiler.plan import Plan
from spark_cep.durations import format_duration
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import RuleState
from spark_cep.model import Coordinates
from spark_cep.pattern.tree import Skip
from spark_cep.why.account import EndReason, PartialEnding, SeenEvent
from spark_cep.why.probes import Chain


@dataclass
class Losses:
    """Tells why partial and complete matches are gone after an event, or a deadline. ``before`` is
    what the key held; ``outputs`` is what was found; ``events``: numbered in order."""

    plan: Plan
    before: RuleState
    outputs: Outputs
    time: int
    event: Coordinates | None
    events: Mapping[Coordinates, SeenEvent]
    matched: Mapping[Chain, str]
    _cut: float = field(init=False, default=0)
    _by: str = field(init=False, default="")

    def __post_init__(self) -> None:
        for chain, match_id in self.matched.items():
            self._cut_by(chain, match_id)

    def of_match(self, chain: Chain) -> PartialEnding:
        """A complete match that was not emitted. Those that began first are asked of first."""
        if self._is_skipped(chain):
            return self._skipped()
        cooldown, quiet = self.plan.rule.cooldown_ms, self.before.quiet_until
        if cooldown is not None and (self.matched or (quiet is not None and self.time < quiet)):
            self._cut_by(chain, "one that the cooldown kept back")
            detail = (
                f"complete, less than the cooldown of {format_duration(cooldown)} after a match"
            )
            return PartialEnding(EndReason.COOLDOWN, self.time, detail, self.event)
        return self._dropped() if self._limited else self._skipped()

    def of_partial(self, chain: Chain) -> PartialEnding:
        """A partial match that could have gone on."""
        return self._dropped() if self._limited and not self._is_skipped(chain) else self._skipped()

    def _is_skipped(self, chain: Chain) -> bool:
        """Return whether a match has skipped a chain. A limit may have come first: then nothing was
        left to skip."""
        pruned = self.outputs.counts[self.plan.rule.id, "pruned"]
        return self.number(chain) < self._cut and bool(pruned or not self._limited)

    @property
    def _limited(self) -> bool:
        counts, rule = self.outputs.counts, self.plan.rule.id
        return bool(counts[rule, "dropped"] or counts[rule, "dropped_matches"])

    def number(self, chain: Chain) -> float:
        """The number of a chain's first event."""
        return min(self._at(at) for _, at in chain)

    def _at(self, at: Coordinates) -> float:
        return self.events[at].number if at in self.events else 0

    def _cut_by(self, chain: Chain, match_id: str) -> None:
        """Move the cut on to that of a match: all that began with an event before it is skipped."""
        skip = self.plan.after_match
        numbers = sorted(self._at(at) for _, at in chain)
        if skip.strategy is Skip.NO_SKIP:
            return
        if skip.strategy is Skip.TO_NEXT:
            cut = numbers[0] + 0.5
        elif skip.strategy is Skip.PAST_LAST_EVENT:
            cut = numbers[-1] + 0.5
        else:
            step = self.plan.steps.index(str(skip.step))
            of_step = sorted(self._at(at) for number, at in chain if number == step)
            if not of_step:
                return
            cut = of_step[0 if skip.strategy is Skip.TO_FIRST else -1]
        if cut > self._cut:
            self._cut, self._by = cut, match_id

    def _skipped(self) -> PartialEnding:
        by = f"match {self._by}" if self._by else "an earlier match"
        detail = f"{by} was found: {skip_in_words(self.plan.after_match)}"
        return PartialEnding(EndReason.SKIP, self.time, detail, self.event)

    def _dropped(self) -> PartialEnding:
        letters = [each for each in self.outputs.dead_letters if each.reason == "limit_reached"]
        limits = self.plan.rule.limits
        detail = letters[0].detail if letters else f"beyond its limits: {limits.on_limit.value}"
        return PartialEnding(EndReason.LIMIT, self.time, detail, self.event)
