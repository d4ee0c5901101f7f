"""Warnings about partial matches that wait longer than their author may think."""

from __future__ import annotations

from collections.abc import Iterator

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.checks.findings import Finding, place_steps, repeats
from spark_cep.pattern.tree import Contiguity, Loop, Rule, Skip, Step, Within

_WAITING = frozenset({Contiguity.FOLLOWED_BY, Contiguity.FOLLOWED_BY_ANY})


def warn_no_window(rule: Rule) -> Iterator[Finding]:
    """A partial match that waits for an event stays until that comes, if nothing else ends it."""
    if rule.within != Within() or rule.after_match.strategy is not Skip.NO_SKIP:
        return  # the skip strategy is warned about
    placed = list(place_steps(rule.pattern))
    if any(_is_open_loop(each.step) for each in placed):
        return  # the loop is warned about
    waiting = [each for each in placed if each.step.after is not None or repeats(each.step)]
    for each in waiting:
        if each.step.after in _WAITING or _waits_for_repetitions(each.step):
            yield each.finding(
                f"without a window a partial match waits for `{each.step.name}` for ever: each key"
                " that begins one holds state until the event comes",
                "after" if each.step.after in _WAITING else "times",
                "`within` on the rule",
                Code.NO_WINDOW,
            )
            return
    for each in waiting[:1]:
        # Each event of the key ends it, or `until` does; but there may be none.
        ended = "the next event of its key" if each.step.until is None else "`until`"
        yield each.finding(
            f"without a window a partial match waits for {ended} for ever: each key that begins one"
            " holds state until the event comes",
            "after" if each.step.after is not None else "times",
            "`within` on the rule",
            Code.NO_WINDOW,
        )


def _is_open_loop(step: Step) -> bool:
    return step.times is not None and step.times.looping and step.until is None


def _waits_for_repetitions(step: Step) -> bool:
    if step.times is None or step.times.maximum == 1 or step.until is not None:
        return False
    return step.loop is not Loop.CONSECUTIVE


def warn_repeated_timeout(rule: Rule) -> Iterator[Finding]:
    """Warn of partial matches that go on waiting behind a match, and time out in the end."""
    if rule.within == Within() or rule.after_match.strategy is not Skip.NO_SKIP:
        return
    placed = list(place_steps(rule.pattern))
    taking = [each for each in placed if not each.step.negative and not each.parents]
    # The gap of an absence that is a match ends behind that of what goes on waiting.
    is_late = rule.within.max_ms is None and any(step.negative for step in rule.pattern[-1:])
    for number, each in enumerate(taking):
        step, last = each.step, number == len(taking) - 1
        found = None if is_late and not last else _goes_on(step, last=last)
        if found is not None:
            field, waits = found
            most = step.times.maximum if step.times is not None else None
            yield each.finding(
                f"{waits.format(name=step.name, most=most)}: the match is followed by a timeout"
                " with `already_matched: true`",
                field,
                "`after_match: skip_past_last_event` or `skip_to_next`; or consumers that pass over"
                " timeouts with `already_matched`",
                Code.REPEATED_TIMEOUT,
            )
            return


_TIMES_OUT = ", and times out"
_EACH = "behind each match a partial match goes on waiting for `{name}`" + _TIMES_OUT
_FEWER = (
    "behind a match with fewer than {most} events of `{name}` a partial match goes on waiting for"
    " more" + _TIMES_OUT
)
_WITHOUT = "behind a match without `{name}` a partial match goes on waiting for it" + _TIMES_OUT


def _goes_on(step: Step, *, last: bool) -> tuple[str, str] | None:
    """The field for which a partial match goes on where another one leaves the step, up to the end
    of the window, and how. Loops that the next event or ``until`` ends do not."""
    if step.after is Contiguity.FOLLOWED_BY_ANY:
        return "after", _EACH
    times = step.times
    if times is not None and step.until is None:
        if step.loop is Loop.COMBINATIONS and step.group is None:
            return "loop", _EACH
        if last and times.maximum != times.minimum and step.loop is not Loop.CONSECUTIVE:
            return "times", _EACH if times.looping else _FEWER
    if last and step.optional and step.after is Contiguity.FOLLOWED_BY:
        return "optional" if times is None else "times", _WITHOUT
    return None
