"""The search for conditions that no event meets, and for those that others imply."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.expressions.contradictions.constants import (
    is_below,
    is_constant,
    is_null,
    quoted,
    text_of,
    value_of,
)
from spark_cep.pattern.expressions.contradictions.facts import (
    NEGATED,
    Facts,
    NeverTrue,
    RequiredPart,
    required,
)
from spark_cep.pattern.expressions.functions.aggregation import aggregate
from spark_cep.pattern.expressions.nodes import Call, Cast, Literal, Node, Reference, walk
from spark_cep.pattern.types import BIGINT, NULL

#: Names, calls and constants.
_WITHOUT_OPERATORS = re.compile(r"[\w.()\[\], ']+")


def never_true(condition: Node, text: str) -> list[NeverTrue]:
    """The reason why no event meets the condition; or the alternatives in it that none meets.
    ``text``: that it was read from."""
    dead: list[NeverTrue] = []
    reason = _contradiction([(condition, True)], Facts(), dead)
    found = [each._replace(whole=False) for each in dead] if reason is None else [reason]
    return [_with_fix(each, condition, text) for each in found]


def implies(one: Node | None, other: Node | None) -> bool:
    """Return whether each event that meets ``one`` certainly meets ``other``; ``None`` is met by
    every event."""
    if other is None:
        return True
    if isinstance(one, Call) and one.operator == "OR":
        return all(implies(part, other) for part in one.arguments)
    facts = Facts()
    atoms, _ = _parts([(one, True)] if one is not None else [])
    if any(facts.add(*atom) is not None for atom in atoms):
        return False
    needed, choices = _parts([(other, True)])
    return all(facts.imply(*atom) for atom in needed) and all(
        any(implies(one, required(*part)) for part in parts) for _, parts in choices
    )


def _parts(
    given: Iterable[RequiredPart],
) -> tuple[list[RequiredPart], list[tuple[Node, list[RequiredPart]]]]:
    """Parts that must all hold, and the alternatives of which one must."""
    atoms: list[RequiredPart] = []
    choices: list[tuple[Node, list[RequiredPart]]] = []
    pending = list(reversed(list(given)))
    while pending:
        node, holds = pending.pop()
        match node:
            case Call(operator="NOT", arguments=(inner,)):
                pending.append((inner, not holds))
            case Call(operator="IS TRUE" | "IS FALSE" as operator, arguments=(inner,)) if holds:
                pending.append((inner, operator == "IS TRUE"))
            case Call(operator="AND" | "OR" as operator, arguments=parts):
                below = [(part, holds) for part in parts]
                if (operator == "AND") == holds:
                    pending += reversed(below)
                else:
                    choices.append((node, below))
            case Call(operator="BETWEEN", arguments=(value, low, high)) if not _reversed(low, high):
                below = [
                    (Call(operator, (value, bound), node.span), holds)
                    for operator, bound in ((">=", low), ("<=", high))
                ]
                if holds:
                    pending += reversed(below)
                else:
                    choices.append((node, below))
            case _:
                atoms.append((node, holds))
    return atoms, choices


def _contradiction(
    given: Sequence[RequiredPart], facts: Facts, dead: list[NeverTrue]
) -> NeverTrue | None:
    """Why the parts do not hold together with ``facts``, to which they are added; ``dead``:
    alternatives that do not, where others do."""
    atoms, choices = _parts(given)
    for atom in atoms:
        reason = _alone(*atom) or facts.add(*atom)
        if reason is not None:
            return reason
    for node, parts in choices:
        inner: list[NeverTrue] = []
        found = [_contradiction([part], facts.copy(), inner) for part in parts]
        reasons = [reason for reason in found if reason is not None]
        if len(reasons) < len(parts):
            dead += [*reasons, *inner]
        elif len({(reason.message, reason.span) for reason in reasons}) == 1:
            return reasons[0]
        else:
            message = f"no part of {quoted(node)} can be true"
            return NeverTrue(message, node.span, "; ".join(r.message for r in reasons[:3]))
    return None


def _alone(node: Node, holds: bool) -> NeverTrue | None:
    """Why a part by itself never holds."""
    if _compares_with_null(node, holds):
        subject, is_not = _beside_null(node, holds)
        allowed = f"`{subject} IS {is_not}NULL`" if subject else "`IS NULL` or `IS NOT NULL`"
        message = f"{quoted(required(node, holds))} is never true: it is NULL"
        return NeverTrue(message, node.span, allowed, Code.COMPARED_WITH_NULL)
    if is_constant(node):
        value = value_of(node)
        if (value is not True) if holds else (value is not False):
            message = f"{quoted(required(node, holds))} is never true"
            return NeverTrue(message, node.span, "a condition over the event's columns")
        return None
    match node:
        case Call(operator="BETWEEN", arguments=(value, low, high)) if holds:
            # Others have been taken apart.
            shown = text_of(value)
            return NeverTrue(
                f"{quoted(node)} is never true: its first bound is above the second",
                node.span,
                f"`{shown} BETWEEN {text_of(high)} AND {text_of(low)}`; for what goes round, as"
                f" hours of a night, `{shown} >= {text_of(low)} OR {shown} <= {text_of(high)}`",
                Code.REVERSED_BETWEEN,
            )
        case Call(operator=operator, arguments=(left, right)) if left == right:
            compared = operator if holds else NEGATED.get(operator)
            if compared in ("<>", "<", ">"):
                shown = quoted(required(node, holds))
                message = f"{shown} is never true: both sides are the same"
                return NeverTrue(message, node.span, "another column, or a look-back, on one side")
    return None


def _reversed(low: Node, high: Node) -> bool:
    known = is_constant(low) and is_constant(high)
    return known and is_below(value_of(high), value_of(low))


def _compares_with_null(node: Node, holds: bool) -> bool:
    match node:
        case Call(operator="IN", arguments=(value, *others)):
            nulls = [is_null(other) for other in others]
            return is_null(value) or (all(nulls) if holds else any(nulls))
    return is_null(node)


def _beside_null(node: Node, holds: bool) -> tuple[str | None, str]:
    """The text of the value that is compared with NULL (``None``: there is none), and ``NOT ``
    where it is probably meant not to be NULL."""
    match node:
        case Call(operator="=" | "<>" as operator, arguments=(left, right)):
            subject = right if is_null(left) else left
            if not is_null(subject):
                return text_of(subject), "" if (operator == "=") == holds else "NOT "
    return None, ""


def _with_fix(reason: NeverTrue, condition: Node, text: str) -> NeverTrue:
    """The reason with a fix, where it is certain what was meant."""
    same = (node for node in walk(condition) if node.span == reason.span)
    for node in same:
        fix = _fix(reason.code, node, text) if isinstance(node, Call) else None
        if fix is not None:
            return reason._replace(fix=fix)
    return reason


def _fix(code: Code, node: Call, text: str) -> str | None:
    written = [text[slice(*each.span)] for each in node.arguments]
    if code is Code.COMPARED_WITH_NULL and node.operator in ("=", "<>"):
        subject = 1 if is_null(node.arguments[0]) else 0
        is_not = "NOT " if node.operator == "<>" else ""
        if is_null(node.arguments[subject]) or not _WITHOUT_OPERATORS.fullmatch(written[subject]):
            return None
        return f"{written[subject]} IS {is_not}NULL"
    if code is Code.REVERSED_BETWEEN and isinstance(value_of(node.arguments[1]), date):
        # Nothing goes round there, as hours of a day do.
        value, low, high = written
        return f"{value} BETWEEN {high} AND {low}"
    return None


def without_events(node: Node, step: str) -> Node:
    """The expression before ``step`` has taken any event."""

    def replaced(part: Node) -> Node:
        match part:
            case Reference(look_back=look_back, span=span) if look_back.step == step:
                found = aggregate(look_back, ())
                if found is None:
                    return Literal(None, NULL, span)
                return Literal(found, BIGINT, span) if isinstance(found, int) else part
            case Call(operator=operator, arguments=arguments, span=span):
                return Call(operator, tuple(map(replaced, arguments)), span)
            case Cast(operand=operand, target=target, span=span):
                return Cast(replaced(operand), target, span)
        return part

    return replaced(node)
