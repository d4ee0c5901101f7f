"""Bounds of the work of one event: the limit, and what the work grows with."""

from __future__ import annotations

from collections.abc import Iterator

from spark_cep.compiler.explain.state_bounds import Bound, events_of_match
from spark_cep.compiler.explain.wording import condition_name
from spark_cep.compiler.plan import EventAtom, Plan
from spark_cep.pattern.work import CALL, HELD_EVENT


def work_bounds(plan: Plan) -> Iterator[Bound]:
    """The limit, and all that counts towards it."""
    limits = plan.rule.limits
    beyond = limits.on_limit.value
    yield Bound("limit", f"{limits.work:,} steps of some 10 ns, beyond that {beyond}")
    yield Bound("grows with", "the partial matches of the key: 1 step each")
    asked = [n for n, atom in enumerate(plan.atoms) if not isinstance(atom, EventAtom)]
    if asked:
        names = ", ".join(map(condition_name, asked))
        are = "is" if len(asked) == 1 else "are"
        steps = f"a step for each operation, {CALL} for a call of Python"
        yield Bound("grows with", f"and, where {names} {are} asked, {steps}")
    yield Bound("grows with", _held(plan))


def _held(plan: Plan) -> str:
    limits, (_, most) = plan.rule.limits, events_of_match(plan.rule.pattern)
    text = f"the events that they have taken: {HELD_EVENT} steps each"
    reached = limits.work // HELD_EVENT
    if most is not None and most * limits.partial_matches <= reached:
        return f"{text}, at most {most} for one partial match"
    return f"{text}, so {reached:,} of them reach the limit"
