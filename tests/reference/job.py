"""A rule set run by the naive matcher, with the interface of
:class:`tests.reference.local.LocalJob`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from spark_cep.compiler.plan import Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import RuleState
from spark_cep.model import LateEvent
from tests.reference.keyed import KeyedMatcher, KeyState
from tests.reference.local import BEFORE_TIME, EventReader, Record, timely


@dataclass
class ReferenceJob:
    """A rule set with its state, key by key."""

    plan: RuleSetPlan
    types: RecordTypes = field(default_factory=RecordTypes)
    watermark: int = BEFORE_TIME
    outputs: Outputs = field(default_factory=Outputs)
    late: list[LateEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._readers = [EventReader(part, self.types) for part in self.plan.partitionings]
        self._matchers = [KeyedMatcher(part, self.types) for part in self.plan.partitionings]
        self._states: list[dict[str | None, KeyState]] = [{} for _ in self._readers]

    def advance(self, records: Iterable[Record], watermark: int) -> None:
        """As the job's."""
        fresh = timely(records, self.watermark, self.late)
        self.watermark = max(self.watermark, watermark)
        for reader, matcher, states in zip(
            self._readers, self._matchers, self._states, strict=True
        ):
            events = reader.by_key(fresh, self.outputs)
            for key in {**dict.fromkeys(states), **dict.fromkeys(events)}:
                state = states.pop(key, None) or KeyState()
                matcher.advance(key, state, events.get(key, ()), self.watermark, self.outputs)
                if not state.idle:
                    states[key] = state

    def rule_states(self) -> Iterator[tuple[str | None, Plan, RuleState]]:
        """As the job's."""
        for matcher, states in zip(self._matchers, self._states, strict=True):
            plans = matcher.partitioning.step_plans
            for key, state in states.items():
                for number, rule_state in state.rules.items():
                    yield key, plans[number], rule_state
