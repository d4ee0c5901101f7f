"""Warnings about NOT steps that forbid what the steps around them need."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import dropwhile

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.checks.findings import Finding, Placed, node_of, place_steps
from spark_cep.pattern.expressions.contradictions import implies
from spark_cep.pattern.tree import Contiguity, Rule, Step


def warn_not_then_same(rule: Rule) -> Iterator[Finding]:
    """Each event that the next step can take is one that the NOT step forbids."""
    for placed, scope in _scoped(rule):
        step = placed.step
        behind = list(dropwhile(lambda other: other.negative, scope[_place(placed) + 1 :]))
        if not step.negative or not behind or not _forbids(step, behind[0]):
            continue
        taken, *rest = behind
        if taken.optional or taken.group is not None:
            continue
        if step.after is Contiguity.NOT_NEXT:
            if taken.after is not Contiguity.NEXT:
                continue
            effect = "it never takes one"
        elif _least(taken) > 1 or any(not other.optional for other in rest):
            effect = "no match is possible"
        elif rest or placed.parents or not _takes_one(taken):
            continue
        else:
            effect = f"`{step.name}` has no effect: the first such event is the one that is taken"
        yield placed.finding(
            f"`{step.name}` forbids every event that `{taken.name}` can take: {effect}",
            "where" if step.where is not None else "step",
            f"a condition of `{step.name}` that leaves the events of `{taken.name}` out",
            Code.NOT_THEN_SAME,
            taken,
        )


def warn_own_repetitions(rule: Rule) -> Iterator[Finding]:
    """``not_followed_by`` behind repetitions holds between them, and they violate it themselves."""
    for placed in place_steps(rule.pattern):
        step, loop = placed.step, placed.previous
        if loop is not None and forbids_repetitions(step, loop):
            yield placed.finding(
                f"`{step.name}` forbids the repetitions of `{loop.name}` themselves, since it also"
                " holds between them: no match is possible",
                "where" if step.where is not None else "step",
                f"a step for each repetition of `{loop.name}`; or a condition of `{step.name}` that"
                f" leaves the events of `{loop.name}` out",
                Code.NOT_OWN_REPETITIONS,
                loop,
            )


def forbids_repetitions(step: Step, loop: Step) -> bool:
    """Return whether a step is a NOT that the repetitions of the one before it violate."""
    if step.after is not Contiguity.NOT_FOLLOWED_BY or loop.negative or loop.group is not None:
        return False
    return _least(loop) > 1 and _forbids(step, loop)


def _scoped(rule: Rule) -> Iterator[tuple[Placed, tuple[Step, ...]]]:
    """Each step with the list that it stands in."""
    for placed in place_steps(rule.pattern):
        around = placed.parents[-1].step.group if placed.parents else rule.pattern
        yield placed, around or ()


def _place(placed: Placed) -> int:
    place = placed.path[-1]
    assert isinstance(place, int)
    return place


def _forbids(step: Step, taken: Step) -> bool:
    """Return whether a NOT step forbids each event that another one can take."""
    same_type = step.of_type in (None, taken.of_type)
    return same_type and taken.group is None and implies(node_of(taken), node_of(step))


def _takes_one(step: Step) -> bool:
    """Return whether a last step takes the first event that fits, and no other one."""
    return step.times is None and step.after is not Contiguity.FOLLOWED_BY_ANY


def _least(step: Step) -> int:
    return 1 if step.times is None else step.times.minimum
