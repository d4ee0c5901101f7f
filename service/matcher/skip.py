"""After-match skip strategies (``org.apache.flink.cep.nfa.aftermatch``).

With any strategy but ``no_skip`` a match is held back while a live partial match has an earlier
start, because that one may still complete and be first.
"""

from __future__ import annotations

from collections.abc import Callable

from service.compiler.plan import Plan
from service.matcher.partial import Finished, RuleState, Taken, order
from service.model import Event
from service.pattern.tree import Skip

#: Says whether a partial or finished match that starts with this event must go.
Dropped = Callable[[Event], bool]


def release(plan: Plan, state: RuleState, missed: Callable[[Finished], None]) -> list[Finished]:
    """Take from ``state`` the finished matches whose turn has come, and drop what they skip.

    ``missed`` is called for a match in which the strategy's step has no event, when the rule asks
    for that to be an error.
    """
    if plan.after_match.strategy is Skip.NO_SKIP:
        released, state.finished = state.finished, []
        return released
    released = []
    state.finished.sort(key=lambda finished: order(finished.first))
    while state.finished:
        match = state.finished[0]
        start = order(match.first)
        if any(order(partial.first) < start for partial in state.partials):
            break
        del state.finished[0]
        released.append(match)
        dropped = _dropped(plan, match, missed)
        if dropped is not None:
            state.partials = [p for p in state.partials if not dropped(p.first)]
            state.finished = [f for f in state.finished if not dropped(f.first)]
    return released


def _dropped(plan: Plan, match: Finished, missed: Callable[[Finished], None]) -> Dropped | None:
    skip = plan.after_match
    match skip.strategy:
        case Skip.TO_NEXT:
            first = order(match.first)
            return lambda event: order(event) <= first
        case Skip.PAST_LAST_EVENT:
            last = order(match.last.event)
            return lambda event: order(event) <= last
    assert skip.step is not None
    taken = _of_step(match.last, plan.steps.index(skip.step))
    if not taken:
        if skip.error_on_miss:
            missed(match)
        return None
    target = taken[-1 if skip.strategy is Skip.TO_FIRST else 0].event
    if skip.error_on_miss and order(target) == order(match.first):
        missed(match)
    bound = order(target)
    return lambda event: order(event) < bound


def _of_step(last: Taken, step: int) -> list[Taken]:
    """The taken events of ``step``, last first."""
    return [taken for taken in last.chain() if taken.step == step]
