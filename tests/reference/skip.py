"""After-match skip strategies (``org.apache.flink.cep.nfa.aftermatch``).

With any strategy but ``no_skip`` a match is held back while a live partial match has an earlier
start, because that one may still complete and be first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from spark_cep.compiler.plan import Plan
from spark_cep.matcher.findings.partial import Finished, RuleState
from spark_cep.pattern.tree import Skip
from tests.reference.found import order

#: Whatever starts before it must go: an event's order, and 1 where that event's own start goes too.
_Cut = tuple[Any, int]


def release(plan: Plan, state: RuleState, missed: Callable[[Finished], None]) -> list[Finished]:
    """Take from ``state`` the finished matches whose turn has come, and drop what they skip.

    ``missed`` is called for a match in which the strategy's step has no event, when the rule asks
    for that to be an error. Of matches with the same start, the one found first comes first.
    """
    if plan.after_match.strategy is Skip.NO_SKIP:
        released, state.finished = state.finished, []
        return released
    released = []
    finished = sorted(state.finished, key=_start)
    starts = sorted(map(_start, state.partials))
    cut: _Cut | None = None
    turn = 0
    while turn < len(finished):
        match = finished[turn]
        waits_for = 0 if cut is None else bisect_left(starts, cut)
        if waits_for < len(starts) and starts[waits_for] < _start(match):
            break
        released.append(match)
        turn += 1
        found = _cut(plan, match, missed)
        if found is not None and (cut is None or found > cut):
            cut = found
            turn = bisect_left(finished, cut, lo=turn, key=_start)
    state.finished = finished[turn:]
    if cut is not None:
        state.partials = [partial for partial in state.partials if _start(partial) >= cut]
    return released


def _start(held: Any) -> _Cut:
    return order(held.first), 0


def _cut(plan: Plan, match: Finished, missed: Callable[[Finished], None]) -> _Cut | None:
    skip = plan.after_match
    match skip.strategy:
        case Skip.TO_NEXT:
            return order(match.first), 1
        case Skip.PAST_LAST_EVENT:
            return order(match.last.event), 1
    assert skip.step is not None
    step = plan.steps.index(skip.step)
    taken = [each.event for each in match.last.chain() if each.step == step]
    if not taken:
        if skip.error_on_miss:
            missed(match)
        return None
    target = taken[-1 if skip.strategy is Skip.TO_FIRST else 0]
    if skip.error_on_miss and target is match.first:
        missed(match)
    return order(target), 0
