"""The rule language in Python: ``Pattern.begin("fail").where(…).times(3).followed_by("ok")``.

A builder for people who generate rules or test them. It writes the same document as YAML and loads
it the same way, so what is accepted, refused and warned about is the same, and so is the rule.
Every method returns a new pattern; a pattern may be the beginning of several.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from service.pattern.canonical import to_yaml
from service.pattern.document import LoadedRule, load_rules
from service.pattern.tree import Rule

_Step = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Steps in order, and what concerns them all. Names are those of Flink CEP's ``Pattern``."""

    steps: tuple[_Step, ...]
    options: Mapping[str, Any]

    @classmethod
    def begin(cls, name: str, group: Pattern | None = None) -> Pattern:
        """Start with a step, or with ``group`` under ``name``."""
        return cls((_step(name, None, group),), {})

    def next(self, name: str, group: Pattern | None = None) -> Pattern:
        """Add a step whose event comes right after the one before (strict contiguity)."""
        return self._then(name, "next", group)

    def followed_by(self, name: str, group: Pattern | None = None) -> Pattern:
        """Add a step that takes the first event that fits (relaxed contiguity)."""
        return self._then(name, "followed_by", group)

    def followed_by_any(self, name: str, group: Pattern | None = None) -> Pattern:
        """Add a step that takes any event that fits (non-deterministic relaxed contiguity)."""
        return self._then(name, "followed_by_any", group)

    def not_next(self, name: str) -> Pattern:
        """Add a step that must not come right after the one before."""
        return self._then(name, "not_next", None)

    def not_followed_by(self, name: str) -> Pattern:
        """Add a step that must not come before the next one, or, at the end, in the window."""
        return self._then(name, "not_followed_by", None)

    def where(self, condition: str) -> Pattern:
        """SQL condition of the last step; a second one must hold too."""
        before = self.steps[-1].get("where")
        return self._with(where=condition if before is None else f"({before}) AND ({condition})")

    def or_where(self, condition: str) -> Pattern:
        """Another condition of the last step; one of them must hold."""
        before = self.steps[-1].get("where")
        return self._with(where=condition if before is None else f"({before}) OR ({condition})")

    def of_type(self, record: str) -> Pattern:
        """Record type of the last step (Flink's ``subtype``)."""
        return self._with(of_type=record)

    def times(self, minimum: int, maximum: int | None = None) -> Pattern:
        """Exactly ``minimum`` events, or up to ``maximum``."""
        return self._with(times=minimum if maximum is None else f"{minimum}..{maximum}")

    def times_or_more(self, minimum: int) -> Pattern:
        """``minimum`` events or more."""
        return self._with(times=f"{minimum}+")

    def one_or_more(self) -> Pattern:
        """One event or more."""
        return self.times_or_more(1)

    def gap(self, duration: str) -> Pattern:
        """Longest time between two repetitions of the last step."""
        return self._with(gap=duration)

    def consecutive(self) -> Pattern:
        """Nothing may come between the repetitions of the last step or group."""
        return self._with(loop="consecutive")

    def combinations(self) -> Pattern:
        """Repetitions of the last step or group may leave out events that fit."""
        return self._with(loop="combinations")

    def greedy(self) -> Pattern:
        """Take as many repetitions of the last step as there are."""
        return self._with(greedy=True)

    def optional(self) -> Pattern:
        """The last step or group may be left out."""
        return self._with(optional=True)

    def until(self, condition: str) -> Pattern:
        """An event that ends the loop of the last step or group."""
        return self._with(until=condition)

    def within(self, duration: str | None = None, *, gap: str | None = None) -> Pattern:
        """Window from the first to the last event, and from each event to the next."""
        if gap is None:
            return self._option(within=duration)
        return self._option(within={"gap": gap} | ({"max": duration} if duration else {}))

    def after_match(self, strategy: str, step: str | None = None, on_miss: str = "") -> Pattern:
        """Skip strategy: ``no_skip``, ``skip_to_next``, ``skip_past_last_event``, or
        ``skip_to_first`` and ``skip_to_last`` with ``step``; ``on_miss="error"`` where it has no
        event."""
        if step is None:
            return self._option(after_match=strategy)
        return self._option(
            after_match={strategy: step} | ({"on_miss": on_miss} if on_miss else {})
        )

    def rule(
        self,
        id: str,  # noqa: A002  the language's word
        *,
        version: int = 1,
        key: str | Sequence[str] | None = None,
        events: str | Sequence[str] | None = None,
        measures: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Rule:
        """The rule. ``fields`` are the language's others: ``description``, ``emit``, ``limits``,
        ``cooldown``, ``effective_from``, ``enabled``. RuleSetError with everything wrong."""
        return self.load(
            id, version=version, key=key, events=events, measures=measures, **fields
        ).rule

    def load(
        self,
        id: str,  # noqa: A002  the language's word
        *,
        measures: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> LoadedRule:
        """As :meth:`rule`, with the warnings."""
        document = {"id": id, **{k: v for k, v in fields.items() if v is not None}}
        if measures:
            document["emit"] = {**document.get("emit", {}), "measures": dict(measures)}
        document |= {"pattern": list(self.steps), **self.options}
        (loaded,) = load_rules(json.dumps(document, default=list), "<python>")
        return loaded

    def _then(self, name: str, after: str, group: Pattern | None) -> Pattern:
        return replace(self, steps=(*self.steps, _step(name, after, group)))

    def _with(self, **fields: Any) -> Pattern:
        return replace(self, steps=(*self.steps[:-1], {**self.steps[-1], **fields}))

    def _option(self, **fields: Any) -> Pattern:
        return replace(self, options={**self.options, **fields})


def _step(name: str, after: str | None, group: Pattern | None) -> _Step:
    made: dict[str, Any] = {"step": name}
    if after is not None:
        made["after"] = after
    if group is not None:
        made["group"] = list(group.steps)
    return made


__all__ = ["Pattern", "to_yaml"]
