"""The matcher answers which conditions that look back are true of an event, by partial match.

A probe is a rule of one edge: it matches an event, from any partial match, if one condition holds.
All probes of a plan are put beside what the matcher remembers of the rule, and what they match of
the event says what is true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from spark_cep.columns.compilation import FOREVER, NEVER
from spark_cep.compiler.formula import TRUE, Atom
from spark_cep.compiler.plan import Action, Edge, GapAtom, LookBackAtom, Plan, State, StateKind
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import AnyPlan, PlannedRule
from spark_cep.matcher.batch.events import Names
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.keys import KeysMatcher, KeysState
from spark_cep.model import Coordinates, TakenEvent
from spark_cep.pattern.expressions import Expression
from spark_cep.pattern.tree import MOST_COUNTED, AfterMatch, Emit, Limits, Within
from spark_cep.why.parts import ConditionPart, WatchedPlan

#: The events of a partial match with the numbers of their steps. It takes none twice.
Chain = frozenset[tuple[int, Coordinates]]
#: What is asked: a condition that looks back, or a gap.
Asked = LookBackAtom | GapAtom

_NO_LIMITS = Limits(MOST_COUNTED, MOST_COUNTED, matches=MOST_COUNTED, work=MOST_COUNTED)
_START, _HELD, _FINAL = range(3)


class Probes:
    """The probes of a plan: of its conditions that look back, of their parts, and of its gaps."""

    def __init__(self, watched: WatchedPlan, types: RecordTypes) -> None:
        plan = watched.plan
        assert isinstance(plan, Plan)
        self._plan = plan
        self.asked: tuple[Asked, ...] = tuple(dict.fromkeys(_asked(plan)))
        part = watched.partitioning
        rules = tuple(
            PlannedRule(_probe(plan, atom, number), part.rules[0].input_bit, ())
            for number, atom in enumerate(self.asked)
        )
        self._events = (1 << len(part.conditions)) - 1
        self._matcher = KeysMatcher(replace(part, rules=rules, keeps_payload=False), types)

    def true_of(
        self, state: KeysState, one: InputBatch, names: Names
    ) -> Mapping[Asked, frozenset[Chain]]:
        """The chains of partial matches for which each holds of the event ``one``; the empty chain
        stands for a partial match that would begin. ``state`` is that of one rule."""
        if not self.asked:
            return {}
        masks = [mask & self._events for mask in one.masks]
        found: dict[str, set[Chain]] = {}
        event, time = replace(one, masks=masks), int(one.events.time[0])
        asked_of = one.events.objects(names, ())(0).at
        for outputs in self._matcher.advance(self._state(state), event, time, names):
            for match in outputs.as_objects().matches:
                chain = chain_of(self._plan, match.steps)
                before = frozenset(each for each in chain if each[1] != asked_of)
                found.setdefault(match.rule_id, set()).add(before)
        return {
            atom: frozenset(found.get(str(number), ())) for number, atom in enumerate(self.asked)
        }

    def _state(self, state: KeysState) -> KeysState:
        """The state of the rule, once for each probe, with no deadlines."""
        count, held = len(self.asked), state.held
        instances = np.repeat(held.instances, count)
        instances["rule"] = np.tile(np.arange(count), len(held.instances))
        instances["deadline"], instances["quiet"] = FOREVER, NEVER
        instances["finished"] = instances["paused"] = instances["limited"] = 0
        partials = np.tile(held.partials, count)
        partials["state"], partials["deadline"] = _HELD, FOREVER
        return KeysState(
            state.keys,
            state.events,
            state.event_key.copy(),
            type(held)(instances, partials, held.finished[:0].copy(), held.nodes.copy()),
        )


def chain_of(plan: AnyPlan, steps: Mapping[str, Sequence[TakenEvent]]) -> Chain:
    """The chain of events by step."""
    return frozenset(
        (plan.steps.index(name), event.at) for name, events in steps.items() for event in events
    )


def counted(plan: AnyPlan, chain: Chain) -> Mapping[str, int]:
    """The number of events by step."""
    found = Counter(step for step, _ in chain)
    return {name: found[n] for n, name in enumerate(plan.steps) if found[n]}


def _asked(plan: Plan) -> Iterator[Asked]:
    for atom in plan.atoms:
        if isinstance(atom, GapAtom):
            yield atom
        elif isinstance(atom, LookBackAtom):
            yield atom
            for leaf in ConditionPart.of(atom.expression).leaves:
                if not leaf.is_event_only:
                    yield leaf_atom(atom, leaf)


def leaf_atom(atom: LookBackAtom, leaf: Expression) -> LookBackAtom:
    """A part of a condition that looks back, as a condition."""
    return replace(atom, expression=leaf)


def _probe(plan: Plan, atom: Asked, number: int) -> Plan:
    step = plan.steps[0]
    take = (Edge(Action.TAKE, _FINAL, Atom(0)),)
    rule = replace(
        plan.rule, id=str(number), within=Within(), after_match=AfterMatch(), emit=Emit(),
        limits=_NO_LIMITS, cooldown_ms=None, effective_from_ms=None,
    )  # fmt: skip
    return replace(
        plan,
        rule=rule,
        states=(
            State(_START, "start", StateKind.START, step, take),
            State(_HELD, "held", StateKind.NORMAL, step, take),
            State(_FINAL, "(match)", StateKind.FINAL, "", ()),
        ),
        start=_START,
        atoms=(atom,),
        relevant=TRUE,
        strict=True,
    )
