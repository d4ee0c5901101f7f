"""An account as text that a person reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from spark_cep.errors import printable
from spark_cep.why.account import (
    Account,
    EndReason,
    EventState,
    Moment,
    PartialAccount,
    PartialEnding,
    Passed,
    SeenEvent,
    Turn,
    Unmet,
)
from spark_cep.why.times import instant_text

#: Moments that are shown, the last ones, unless the caller says otherwise.
MOST_SHOWN = 200
#: Ends that leave nothing to be asked about.
_NO_LOSS = (EndReason.MATCH, EndReason.PREFERRED)
_OF_EVENT = {
    EventState.LATE: "late: the watermark had passed its time, so no rule has seen it",
    EventState.WAITING: "waits for the watermark: no rule has seen it yet",
    EventState.TOO_EARLY: "comes before the rule's effective_from",
    EventState.UNSEEN: "is another version's: it came before this one began, or behind its end",
    EventState.EARLIER: "was taken by an earlier version of the rule",
}


def account_text(account: Account, most: int = MOST_SHOWN) -> str:
    """The account; of its moments the last ``most``."""
    return "\n".join(map(printable, _lines(account, most)))


def _lines(account: Account, most: int) -> Iterator[str]:
    yield _heading(account)
    moments = account.moments[max(0, len(account.moments) - most) :]
    left_out = account.dropped_moments + len(account.moments) - len(moments)
    if moments:
        yield ""
    if left_out:
        yield f"… {left_out} earlier ones"
    for moment in moments:
        yield from moment_lines(moment, account.partials)
    if account.open:
        yield ""
        yield "Open"
        for partial in account.open:
            yield f"  {_open(partial)}"
    verdict = list(verdict_lines(account))
    if verdict:
        yield ""
        yield from verdict
    if account.failures:
        yield ""
        yield "Dead letters"
        yield from (f"  {failure}" for failure in account.failures)


def _heading(account: Account) -> str:
    key = "without key" if account.key is None else f"key {account.key}"
    counts = (
        (account.starts.events, "event", "events"),
        (len(account.matches), "match", "matches"),
        (len(account.timeouts), "timeout", "timeouts"),
        (len(account.open), "open partial match", "open partial matches"),
    )
    counted = ", ".join(f"{count} {one if count == 1 else more}" for count, one, more in counts)
    return f"Rule {account.rule_id}, version {account.rule_version}, {key}: {counted}"


def moment_lines(moment: Moment, partials: Mapping[int, PartialAccount]) -> Iterator[str]:
    """Yield time and event in one line, then a line for each thing that it did. ``partials``: the
    partial matches by number."""
    time = instant_text(moment.time)
    if moment.event is None:
        yield f"{time}  {moment.note or 'the time passes'}"
    else:
        yield f"{time}  {event_text(moment.event)}"
    if moment.state in _OF_EVENT:
        yield f"    {_OF_EVENT[moment.state]}"
    if moment.note and moment.event is not None:
        yield f"    {moment.note}"
    lines = list(_effects(moment, partials))
    if moment.state is EventState.PASSED and not lines and not moment.note:
        lines = ["    changes nothing"]
    yield from lines


def _effects(moment: Moment, partials: Mapping[int, PartialAccount]) -> Iterator[str]:
    for turn in moment.turns:
        yield from _turn(turn)
        for _, number in turn.took:
            yield from _ended_at_once(partials.get(number), moment)
    for step, number in moment.started:
        yield f"    {number} begins with {_first_of(partials.get(number), moment)} as {step}"
        yield from _ended_at_once(partials.get(number), moment)
    if moment.event is not None and not moment.turns and not moment.started:
        for passed in moment.not_started:
            yield from _passed(passed, "    ", "nothing begins: ")
    for match_id in moment.matches:
        yield f"    match {match_id}"


def _ended_at_once(partial: PartialAccount | None, moment: Moment) -> Iterator[str]:
    """The end of a partial match that has taken the event: complete, and not emitted, or dropped.
    A match has a line of its own."""
    ending = None if partial is None else partial.ending
    if partial is None or ending is None or moment.event is None or ending.reason in _NO_LOSS:
        return
    if ending.event == moment.event.at:
        yield f"        {partial.number} ends, {ending_text(ending)}"


def _first_of(partial: PartialAccount | None, moment: Moment) -> str:
    """The first event of a partial match: in SQL an attempt may begin at an earlier row."""
    events = [] if partial is None else [each for taken in partial.steps.values() for each in taken]
    first = min((each.number for each in events), default=0)
    own = 0 if moment.event is None else moment.event.number
    return f"event {first}" if first and first != own else "it"


def event_text(event: SeenEvent) -> str:
    """An event in one line."""
    number = f"event {event.number}" if event.number else "an event"
    kind = f" {event.type}" if event.type else ""
    values = f": {values_text(event.values)}" if event.values else ""
    return f"{number}{kind} ({event.at.text}){values}"


def _turn(turn: Turn) -> Iterator[str]:
    held = ", ".join(step if count == 1 else f"{step} {count}" for step, count in turn.held.items())
    name = f"    {turn.partial} ({held})"
    for step, number in turn.took:
        goes_on = "" if number == turn.partial else f"; {number} goes on with it"
        yield f"{name} takes it as {step}{goes_on}"
    if turn.ending is not None:
        yield f"{name} ends, {ending_text(turn.ending)}"
    elif not turn.took and turn.passed:
        yield f"{name} passes it over"
    if turn.ending is None or turn.ending.reason is EndReason.CONTIGUITY:
        for passed in turn.passed if not turn.took else ():
            yield from _passed(passed, "        ", "")


def ending_text(ending: PartialEnding) -> str:
    """The end of a partial match: its reason and more of it."""
    held = "".join(f"; {unmet_text(each)}" for each in ending.conditions)
    result = ""
    if ending.result is not None:
        result = "" if ending.reason is EndReason.MATCH else f"; timeout {ending.result}"
    return f"{ending.reason.value.replace('_', ' ')}: {ending.detail}{held}{result}"


def _passed(passed: Passed, indent: str, before: str) -> Iterator[str]:
    if passed.unknown and not passed.unmet:
        return
    for unmet in passed.unmet:
        yield f"{indent}{before}{passed.step}: {unmet_text(unmet, 'must not be true, and is')}"


def unmet_text(unmet: Unmet, holds: str = "is true") -> str:
    """A part of a condition and its truth, with the values seen. ``holds``: what is said of one
    that is true."""
    verdict = holds if unmet.holds else "is not true"
    seen = ", ".join(f"{name} is {value_text(value)}" for name, value in unmet.values.items())
    return f"{unmet.text} {verdict}" + (f": {seen}" if seen else "")


def ended_lines(account: Account) -> Iterator[str]:
    """A line for each partial match that ended without a match."""
    for partial in account.partials.values():
        if partial.ending is not None and partial.ending.reason not in _NO_LOSS:
            of_key = "" if account.key is None else f", key {value_text(account.key)}"
            taken = ", ".join(f"{step} {len(each)}" for step, each in partial.steps.items())
            yield printable(
                f"ended: {account.rule_id}{of_key}: {taken} at {instant_text(partial.ending.time)},"
                f" {ending_text(partial.ending)}"
            )


def _open(partial: PartialAccount) -> str:
    steps = ", ".join(
        f"{step} {' '.join(str(each.number) for each in events)}"
        for step, events in partial.steps.items()
    )
    said = f"{partial.number} (events {steps})"
    if partial.held_back:
        return f"{said} is complete, and held back until earlier partial matches are decided"
    if partial.waits_for:
        said += f" waits for {' or '.join(partial.waits_for)}"
    if partial.forbids:
        said += f", and not for {' or '.join(partial.forbids)}"
    if partial.deadline is None:
        return f"{said}, for ever"
    until = "a match at" if partial.absence else "until"
    return f"{said}, {until} {instant_text(partial.deadline)}"


def verdict_lines(account: Account) -> Iterator[str]:
    """Yield the reason why nothing matched; no lines where something did."""
    starts = account.starts
    if not starts.events:
        yield from _no_events(account)
        return
    if account.matches:
        return
    nearest = account.nearest
    if nearest is not None:
        taken = ", ".join(f"{step} {len(events)}" for step, events in nearest.steps.items())
        end = "is open" if nearest.ending is None else f"ended, {ending_text(nearest.ending)}"
        yield f"Nothing matched. {nearest.number} came nearest: it took {taken}, and {end}."
        return
    yield "The rule never began."
    for name in starts.missing_types:
        yield f"  no record of type {name} was there; seen: {', '.join(starts.types) or 'none'}"
    for each in starts.conditions:
        seen = _alternatives(each.values) if each.true_of < starts.events else ""
        count = f"{each.true_of} of {starts.events} events"
        yield f"  {each.step}: {each.text} was true of {count}{seen}"


def _no_events(account: Account) -> Iterator[str]:
    starts = account.starts
    read = starts.all_events + starts.without_key
    records = "1 record of its inputs was" if read == 1 else f"{read} records of its inputs were"
    yield f"The rule has seen no event of this key; {records} read."
    if starts.without_key:
        have = "has" if starts.without_key == 1 else "have"
        yield f"  {starts.without_key} of them {have} no key: it is NULL"
    if starts.keys_like:
        keys = ", ".join(map(value_text, starts.keys_like))
        yield f"  keys that were seen: {keys}"


def _alternatives(values: Sequence[Mapping[str, Any]]) -> str:
    return "; seen: " + " | ".join(map(values_text, values)) if any(values) else ""


def values_text(values: Mapping[str, Any]) -> str:
    """Columns and their values."""
    return (
        ", ".join(f"{name} {value_text(value)}" for name, value in values.items()) or "no columns"
    )


def value_text(value: Any) -> str:
    """A value as an expression has it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return value.replace(tzinfo=None).isoformat(" ")
        case date() | Decimal() | int() | float():
            return str(value)
    return repr(value)
