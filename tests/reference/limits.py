"""What one key may hold for one rule, and what goes when it is more.

A finished match that its skip strategy holds back counts like a partial match: it is held too.
The bounds hold exactly after every event; while one event is applied, its branches may stand
beside each other for a moment.

* ``drop_oldest`` drops what started first, so the newest can still complete;
* ``reject_new`` drops what started last, so the oldest can still complete; of what started with
  one event, the branches found last;
* ``pause_rule`` drops everything and ignores the key's events from then on.

Of the matches that one event completes, too, so many at most are written.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import takewhile

from spark_cep.matcher.findings.partial import Finished, Partial, RuleState, Taken
from spark_cep.pattern.tree import Limits, OnLimit
from tests.reference.found import order


def beyond(state: RuleState, limits: Limits) -> bool:
    """Whether ``state`` holds more than ``limits`` allow."""
    if len(state.partials) + len(state.finished) > limits.partial_matches:
        return True
    if state.events_at_most <= limits.events:
        return False
    state.events_at_most = held_events(state)
    return state.events_at_most > limits.events


def enforce(state: RuleState, limits: Limits, release: Callable[[], None]) -> int:
    """Bring ``state``, which is beyond ``limits``, back within; returns how many were dropped.

    ``release`` is called when held matches may have become free.
    """
    match limits.on_limit:
        case OnLimit.DROP_OLDEST:
            return _drop_oldest(state, limits, release)
        case OnLimit.REJECT_NEW:
            return _reject_new(state, limits)
    return pause(state)


def pause(state: RuleState) -> int:
    """Drop everything, and ignore all that comes; returns how many were dropped."""
    dropped = len(state.partials) + len(state.finished)
    state.partials, state.finished, state.paused = [], [], True
    return dropped


def keep(matches: Sequence[Finished], limits: Limits) -> list[Finished]:
    """Of the matches that one event completed, too many and in the order of their starts, those
    that are written: the last, the first, or none."""
    match limits.on_limit:
        case OnLimit.DROP_OLDEST:
            return list(matches[-limits.matches :])
        case OnLimit.REJECT_NEW:
            return list(matches[: limits.matches])
    return []


def held_events(state: RuleState) -> int:
    """How many distinct events the partial and finished matches hold."""
    return len({id(taken.event) for taken in held_nodes(_held(state))})


def held_nodes(held: Iterable[Partial | Finished]) -> Iterator[Taken]:
    """The events taken of partial and finished matches; those that several have in common once."""
    nodes: set[int] = set()
    for each in held:
        for taken in _unknown(each.last, nodes):
            nodes.add(id(taken))
            yield taken


def _held(state: RuleState) -> Iterator[Partial | Finished]:
    yield from state.partials
    yield from state.finished


def _unknown(last: Taken, nodes: Container[int]) -> Iterator[Taken]:
    """The part of a chain that no chain before it had, last first."""
    return takewhile(lambda taken: id(taken) not in nodes, last.chain())


def _drop_oldest(state: RuleState, limits: Limits, release: Callable[[], None]) -> int:
    dropped = 0
    while state.partials and beyond(state, limits):
        before = len(state.partials)
        excess = before + len(state.finished) - limits.partial_matches
        if excess > 0:
            del state.partials[:excess]
        else:
            # No later start holds the oldest start's event, so that one at least is freed.
            oldest = state.partials[0].first
            state.partials = [p for p in state.partials if p.first is not oldest]
        dropped += before - len(state.partials)
        release()
    return dropped


def _reject_new(state: RuleState, limits: Limits) -> int:
    before = len(state.partials) + len(state.finished)
    partials: list[Partial] = []
    finished: list[Finished] = []
    nodes: set[int] = set()
    events: set[int] = set()
    count_events = state.events_at_most > limits.events
    for held in sorted(_held(state), key=_start):
        if len(partials) + len(finished) == limits.partial_matches:
            break
        if count_events:
            unknown = list(_unknown(held.last, nodes))
            more = {id(taken.event) for taken in unknown} - events
            if len(events) + len(more) > limits.events:
                continue
            nodes.update(map(id, unknown))
            events |= more
        if isinstance(held, Partial):
            partials.append(held)
        else:
            finished.append(held)
    state.partials, state.finished = partials, finished
    return before - len(partials) - len(finished)


def _start(held: Partial | Finished) -> tuple[int, int, tuple[str, int, int]]:
    return order(held.first)
