"""Warnings about rules that run, but cost much or do not do what their author may think."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from spark_cep.documents.nearest import nearest
from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.checks.conditions import warn_first_round, warn_never_true
from spark_cep.pattern.checks.findings import (
    Finding,
    Placed,
    is_last_event,
    node_of,
    place_steps,
    repeats,
)
from spark_cep.pattern.checks.not_steps import (
    forbids_repetitions,
    warn_not_then_same,
    warn_own_repetitions,
)
from spark_cep.pattern.checks.references import expressions_of, mention
from spark_cep.pattern.checks.waiting import warn_no_window, warn_repeated_timeout
from spark_cep.pattern.expressions import Expression
from spark_cep.pattern.expressions.contradictions import implies
from spark_cep.pattern.tree import Contiguity, Loop, Rule, Skip, Step, Within, walk

_ALIKE = 0.75
"""How much a record's name has in common with a step's to be taken for a slip: one swapped pair of
letters in four."""


def cautions(rule: Rule) -> Iterator[Finding]:
    """Every warning about the rule."""
    for check in _CHECKS:
        yield from check(rule)


def warn_no_key(rule: Rule) -> Iterator[Finding]:
    """Without a key, one partition does all the work."""
    if not rule.key:
        yield Finding(
            "the rule has no `key`: all its events go through one partition",
            ("id",),
            "`key` with one or more expressions over the event",
            code=Code.NO_KEY,
        )


def warn_greedy_last(rule: Rule) -> Iterator[Finding]:
    """Greedy gives way to nothing when nothing follows."""
    for placed in place_steps(rule.pattern):
        if placed.step.greedy and is_last_event(placed):
            found = placed.finding(
                f"`greedy` has no effect on `{placed.step.name}`: nothing follows it",
                "greedy",
                "`greedy` on a step that another one follows",
                Code.GREEDY_LAST,
            )
            yield replace(found, fix="false")


def warn_swallowed(rule: Rule) -> Iterator[Finding]:
    """A greedy loop goes first: what fits it too never reaches the next step."""
    for placed in place_steps(rule.pattern):
        loop, step = placed.previous, placed.step
        if loop is None or step.group is not None or step.negative or not _takes_all(loop):
            continue
        if step.optional and step.after is not Contiguity.NEXT:
            continue  # behind an event that it lets pass, it takes what the loop takes too
        same_type = loop.of_type in (None, step.of_type)
        if same_type and implies(node_of(step), node_of(loop)):
            endless = loop.times is not None and loop.times.looping
            yield placed.finding(
                f"`{step.name}` never takes an event: each one that fits it also fits the greedy"
                f" loop `{loop.name}`, which {_FIRST if endless else _EVEN_FULL}",
                "where" if step.where is not None else "step",
                f"a condition of `{loop.name}` that excludes the events of `{step.name}`; or"
                f" `until` or `gap` on `{loop.name}`, or no `greedy`",
                Code.SWALLOWED_STEP,
                loop,
            )


_FIRST = "takes it first"
_EVEN_FULL = "has priority even when it is full"


def _takes_all(step: Step) -> bool:
    """Return whether it is a greedy loop of single events that no event and no pause ends."""
    if not step.greedy or step.times is None or step.times.minimum == step.times.maximum:
        return False
    return step.group is None and step.until is None and step.gap_ms is None


def warn_void_not(rule: Rule) -> Iterator[Finding]:
    """``not_followed_by`` gives way to ``not_next`` right after it, and at the end of the pattern
    to any NOT step; in Flink too. Behind repetitions it still holds between them."""
    scopes: dict[tuple[str | int, ...], list[Placed]] = {}
    for placed in place_steps(rule.pattern):
        scopes.setdefault(placed.path[:-1], []).append(placed)
    for scope in scopes.values():
        for number, placed in enumerate(scope):
            if placed.step.after is not Contiguity.NOT_FOLLOWED_BY:
                continue
            before = next((p.step for p in scope[number::-1] if not p.step.negative), None)
            stronger = _gives_way_to(scope[number + 1 :])
            if before is None or stronger is None or any(map(repeats, walk((before,)))):
                continue
            yield placed.finding(
                f"`{placed.step.name}` has no effect: the NOT step `{stronger.step.name}` comes"
                " after it with nothing to take between them",
                "after",
                "`not_next` first, then `not_followed_by`; two `not_followed_by` as one, with OR",
                Code.VOID_NOT,
                stronger.step,
            )


def _gives_way_to(behind: Sequence[Placed]) -> Placed | None:
    """The NOT step among those directly behind that leaves a ``not_followed_by`` without effect."""
    nots = list(takewhile(lambda placed: placed.step.negative, behind))
    for placed in nots:
        if placed.step.after is Contiguity.NOT_NEXT:
            return placed
    return nots[-1] if nots and is_last_event(nots[-1]) else None


def warn_not_between(rule: Rule) -> Iterator[Finding]:
    """``not_followed_by`` behind repetitions also holds between them; in Flink too."""
    for placed in place_steps(rule.pattern):
        before = placed.previous
        loop = None if before is None else _loop_at_end(before)
        if before is not None and forbids_repetitions(placed.step, before):
            continue  # that is warned about
        if placed.step.after is Contiguity.NOT_FOLLOWED_BY and loop is not None:
            yield placed.finding(
                f"`{placed.step.name}` also forbids an event between two repetitions of"
                f" `{loop.name}`, not only behind the last",
                "after",
                f"a step for each repetition of `{loop.name}`, if it is to hold only behind the"
                " last",
                Code.NOT_BETWEEN,
                before,
            )


def _loop_at_end(step: Step) -> Step | None:
    """The step, or the last one within the group, that repeats with other events in between."""
    if repeats(step) and step.loop is not Loop.CONSECUTIVE:
        return step
    return _loop_at_end(step.group[-1]) if step.group else None


def warn_endless_loop(rule: Rule) -> Iterator[Finding]:
    """A loop that nothing ends holds its partial matches for ever."""
    if rule.within != Within():
        return
    for placed in place_steps(rule.pattern):
        step = placed.step
        if step.times is not None and step.times.looping and step.until is None:
            yield placed.finding(
                f"the loop `{step.name}` has neither a window nor `until`: its partial matches"
                " stay, with ever more events, until `limits.work` or another limit drops them",
                "times",
                "`within` on the rule",
                Code.ENDLESS_LOOP,
            )


def warn_skip_without_window(rule: Rule) -> Iterator[Finding]:
    """A skip strategy waits for earlier partial matches to end, and without window they may not."""
    if rule.after_match.strategy is not Skip.NO_SKIP and rule.within == Within():
        yield Finding(
            f"`{rule.after_match.strategy.value}` without window: an unfinished earlier partial"
            " match holds matches back",
            ("after_match",),
            "`within` on the rule",
            code=Code.SKIP_WITHOUT_WINDOW,
        )


def warn_cost(rule: Rule) -> Iterator[Finding]:
    """Steps that branch at every event multiply partial matches inside a loop."""
    placed = list(place_steps(rule.pattern))
    loops = [p for p in placed if p.step.times is not None and p.step.times.looping]
    for loop in loops:
        if loop.step.loop is Loop.COMBINATIONS:
            yield loop.finding(
                f"`combinations` in the loop `{loop.step.name}`: each event that fits doubles"
                " the partial matches",
                "loop",
                "`relaxed` or `consecutive`; or `times` with an upper bound",
                Code.MANY_COMBINATIONS,
            )
    branching = [p for p in placed if p.step.after is Contiguity.FOLLOWED_BY_ANY]
    if loops and len(branching) > 1:
        names = ", ".join(f"`{p.step.name}`" for p in branching)
        yield branching[-1].finding(
            f"`followed_by_any` on {names} together with a loop: partial matches multiply with"
            " every event that fits",
            "after",
            "`followed_by`; or `times` with an upper bound; or a short window",
            Code.MANY_COMBINATIONS,
        )


def warn_later_steps(rule: Rule) -> Iterator[Finding]:
    """A condition that refers to a later step sees NULL, unless a group brings it round again."""
    placed = list(place_steps(rule.pattern))
    order = {p.step.name: number for number, p in enumerate(placed)}
    for number, here in enumerate(placed):
        for field in ("where", "until"):
            expression: Expression | None = getattr(here.step, field)
            for name in dict.fromkeys(b.step for b in expression.look_backs) if expression else ():
                later = order.get(name, -1)
                if later <= number or expression is None or _come_round(here, placed[later]):
                    continue
                yield Finding(
                    f"`{field}` of `{here.step.name}` refers to the later step `{name}`,"
                    " which has no events yet: the reference is NULL",
                    (*here.path, field),
                    "references to steps that come before, or to the step itself",
                    here.step.name,
                    Code.UNTAKEN_STEP,
                    offsets=mention(expression, name),
                )


def warn_misspelt_step(rule: Rule) -> Iterator[Finding]:
    """``fial.ip`` is a column of a record ``fial`` when no step has that name; without a schema
    nobody knows that there is no such record."""
    steps = [p.step.name for p in place_steps(rule.pattern) if p.step.group is None]
    records = {path[0] for expression in rule.key for path in expression.columns}
    for expression, path, step in expressions_of(rule):
        arguments = (look.argument for look in expression.look_backs)
        columns = {c for one in (expression, *arguments) if one is not None for c in one.columns}
        for name in sorted({c[0] for c in columns if len(c) > 1} - records):
            meant = nearest(name, steps, _ALIKE)
            if meant is not None:
                yield Finding(
                    f"there is no step `{name}`, so `{name}.…` is read as a record of the event",
                    path,
                    f"did you mean the step `{meant}`?",
                    step,
                    Code.MISSPELT_STEP,
                    offsets=mention(expression, name),
                )


def _come_round(one: Placed, other: Placed) -> bool:
    # A group itself counts: its `until` is asked after its members have been taken.
    around = {placed.path for placed in (*one.parents, one) if repeats(placed.step)}
    return any(parent.path in around for parent in other.parents)


_CHECKS: tuple[Callable[[Rule], Iterator[Finding]], ...] = (
    warn_no_key,
    warn_never_true,
    warn_first_round,
    warn_greedy_last,
    warn_swallowed,
    warn_void_not,
    warn_not_between,
    warn_not_then_same,
    warn_own_repetitions,
    warn_no_window,
    warn_endless_loop,
    warn_repeated_timeout,
    warn_skip_without_window,
    warn_cost,
    warn_later_steps,
    warn_misspelt_step,
)
