"""The part of an account that is about some events: the partial match that took most of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from spark_cep.errors import printable
from spark_cep.model import Coordinates
from spark_cep.why.account import Account, EventState, Moment, PartialAccount, Passed
from spark_cep.why.text import ending_text, event_text, unmet_text

#: Events that are told of.
_MOST_EVENTS = 5


def told_of(account: Account, events: Collection[Coordinates]) -> list[str]:
    """The lines that say what became of these events: how the partial match that took most of them
    ended, and why it did not take the others."""
    return [printable(line) for line in _lines(account, events)]


def _lines(account: Account, events: Collection[Coordinates]) -> Iterator[str]:
    moments = [each for each in account.moments if each.event and each.event.at in events]
    wanted = {*events}

    def nearness(partial: PartialAccount) -> tuple[int, int, int]:
        taken = _taken(partial)
        return len(taken & wanted), -len(taken - wanted), -partial.number

    best = max(account.partials.values(), key=nearness, default=None)
    if best is None or not nearness(best)[0]:
        yield "no partial match took one of these events"
        for moment in moments[:_MOST_EVENTS]:
            yield from _of_moment(moment, moment.not_started)
        return
    steps = "; ".join(
        f"{step} {' '.join(str(each.number) for each in taken)}"
        for step, taken in best.steps.items()
    )
    end = "is open" if best.ending is None else f"ended, {ending_text(best.ending)}"
    yield f"partial match {best.number} took events {steps}, and {end}"
    others = [each for each in moments if each.event and each.event.at not in _taken(best)]
    for moment in others[:_MOST_EVENTS]:
        turn = next((each for each in moment.turns if each.partial == best.number), None)
        yield from _of_moment(moment, () if turn is None else turn.passed)
    if len(others) > _MOST_EVENTS:
        yield f"and {len(others) - _MOST_EVENTS} more events that it did not take"


def _taken(partial: PartialAccount) -> set[Coordinates]:
    return {event.at for several in partial.steps.values() for event in several}


def _of_moment(moment: Moment, passed: Collection[Passed]) -> Iterator[str]:
    assert moment.event is not None
    unmet = [f"{each.step}: {unmet_text(one)}" for each in passed for one in each.unmet]
    if moment.state in (EventState.LATE, EventState.WAITING, EventState.TOO_EARLY):
        unmet.append(moment.state.value.replace("_", " "))
    said = f": {'; '.join(unmet)}" if unmet else ""
    yield f"{event_text(moment.event)} is not in it{said}"
