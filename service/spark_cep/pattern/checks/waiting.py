"""Warnings about partial matches that wait longer than their author may think."""

from __future__ import annotations

from collections.abc import Iterator

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.checks.findings import Finding, Placed, place_steps
from spark_cep.pattern.tree import Contiguity, Loop, Rule, Skip, Step, Within

_WAITING = frozenset({Contiguity.FOLLOWED_BY, Contiguity.FOLLOWED_BY_ANY})


def warn_no_window(rule: Rule) -> Iterator[Finding]:
    """A partial match that waits for an event stays until that comes, if nothing else ends it."""
    if rule.within != Within() or rule.after_match.strategy is not Skip.NO_SKIP:
        return  # the skip strategy is warned about
    placed = list(place_steps(rule.pattern))
    if any(_is_open_loop(each.step) for each in placed):
        return  # the loop is warned about
    for each in placed:
        if each.step.after in _WAITING or _waits_for_repetitions(each.step):
            yield each.finding(
                f"without a window a partial match waits for `{each.step.name}` for ever: each key"
                " that begins one holds state until the event comes",
                "after" if each.step.after in _WAITING else "times",
                "`within` on the rule",
                Code.NO_WINDOW,
            )
            return


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
    for number, each in enumerate(taking):
        field = _goes_on(each, last=number == len(taking) - 1)
        if field is not None:
            yield each.finding(
                f"behind each match a partial match goes on waiting for `{each.step.name}`, and"
                " times out: the match is followed by a timeout with `already_matched: true`",
                field,
                "`after_match: skip_past_last_event` or `skip_to_next`; or consumers that pass over"
                " timeouts with `already_matched`",
                Code.REPEATED_TIMEOUT,
            )
            return


def _goes_on(placed: Placed, *, last: bool) -> str | None:
    """The field for which a partial match goes on where another one leaves the step."""
    step = placed.step
    if step.after is Contiguity.FOLLOWED_BY_ANY:
        return "after"
    if step.times is not None and step.loop is Loop.COMBINATIONS and step.group is None:
        return "loop"
    if last and step.times is not None and step.times.maximum != step.times.minimum:
        return "times"
    return "optional" if last and step.optional else None
