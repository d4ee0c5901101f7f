"""Warnings about conditions of steps that no event can meet."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.checks.findings import Finding, Placed, place_steps, repeats
from spark_cep.pattern.expressions import Expression
from spark_cep.pattern.expressions.contradictions import NeverTrue, never_true, without_events
from spark_cep.pattern.expressions.nodes import Reference, walk
from spark_cep.pattern.tree import Rule


def warn_never_true(rule: Rule) -> Iterator[Finding]:
    """Conditions, and parts of them, that are never true; those of a step that look back at the
    step itself also before it has taken any event."""
    for placed in place_steps(rule.pattern):
        step = placed.step
        if step.where is not None:
            found = list(_found(placed, "where", step.where))
            yield from found
            if not found and not step.negative:
                yield from _at_first(placed, step.where)
        if step.until is not None:
            yield from _found(placed, "until", step.until)


def _found(placed: Placed, field: str, condition: Expression) -> Iterator[Finding]:
    for reason in never_true(condition.node, condition.text):
        effect = _effect(placed, field) if reason.whole else "this part never counts"
        finding = placed.finding(
            f"{reason.message}, so {effect}", field, reason.allowed, reason.code
        )
        found = replace(finding, offsets=reason.span, fix=reason.fix)
        if reason.beside is not None:
            what, span = reason.beside
            found = replace(found, related=((what, finding.path, span),))
        yield found


def _effect(placed: Placed, field: str) -> str:
    name = placed.step.name
    if field == "until":
        return f"it never ends `{name}`"
    return f"`{name}` {'forbids nothing' if placed.step.negative else 'never takes an event'}"


def _at_first(placed: Placed, condition: Expression) -> Iterator[Finding]:
    """The condition of a step that has taken nothing yet, where it asks what the step has taken."""
    name = placed.step.name
    asked = _asked(condition, {name})
    yield from _never_without(
        placed,
        condition,
        asked,
        f"`where` of `{name}` is never true for its first event: the look-back finds none before"
        " it",
    )


def warn_first_round(rule: Rule) -> Iterator[Finding]:
    """Conditions that are never true in the first round of a group that repeats, because they refer
    to a later step of it."""
    placed = list(place_steps(rule.pattern))
    for number, here in enumerate(placed):
        where = here.step.where
        around = _first_repeated(here)
        if where is None or here.step.negative or around is None:
            continue
        inside = (each for each in placed[number + 1 :] if around in each.parents)
        asked = _asked(where, {each.step.name for each in inside})
        if asked and not never_true(where.node, where.text):
            name, group = asked[0].look_back.step, around.step.name
            yield from _never_without(
                here,
                where,
                asked,
                f"`where` of `{here.step.name}` is never true in the first round of `{group}`:"
                f" the later step `{name}` has no events yet, so no round of `{group}` is ever"
                " complete",
            )


def _asked(condition: Expression, names: Container[str]) -> list[Reference]:
    """Return the references to events of these steps."""
    return [
        part
        for part in walk(condition.node)
        if isinstance(part, Reference) and part.look_back.step in names
    ]


def _never_without(
    placed: Placed, condition: Expression, asked: list[Reference], message: str
) -> Iterator[Finding]:
    """The condition, if it is never true while the steps that are asked for have no events."""
    if not asked:
        return
    node = condition.node
    for name in dict.fromkeys(part.look_back.step for part in asked):
        node = without_events(node, name)
    reasons = never_true(node, condition.text)
    if any(reason.whole for reason in reasons):
        allowed = _or_null(reasons, condition, asked[0])
        finding = placed.finding(message, "where", allowed, Code.UNTAKEN_STEP)
        yield replace(finding, offsets=asked[0].span)


def _first_repeated(placed: Placed) -> Placed | None:
    """The outermost group around a step that repeats, if no round goes without the step."""
    for number, parent in enumerate(placed.parents):
        if repeats(parent.step):
            within = (*placed.parents[number + 1 :], placed)
            return None if any(each.step.optional for each in within) else parent
    return None


def _or_null(reasons: list[NeverTrue], condition: Expression, asked: Reference) -> str:
    written = condition.text[slice(*asked.span)]
    part = condition.text[slice(*reasons[0].span)]
    return f"`({written} IS NULL OR {part})`"
