"""Conditions split at their ANDs and ORs."""

from __future__ import annotations

import pytest

from spark_cep.pattern.expressions import And, Leaf, Or, boolean_structure, parse


def shown(part: Leaf | And | Or) -> str:
    """The structure on one line."""
    match part:
        case Leaf(expression):
            return f"[{expression.canonical}]"
        case And(parts):
            return f"And({', '.join(map(shown, parts))})"
        case Or(parts):
            return f"Or({', '.join(map(shown, parts))})"


@pytest.mark.parametrize(
    ("text", "structure"),
    [
        ("x > 1", "[x > 1]"),
        ("x > 1 AND (y OR z)", "[x > 1 AND (y OR z)]"),
        ("x > a.x", "[x > LAST(a.x)]"),
        ("x AND y > a.y", "And([x], [y > LAST(a.y)])"),
        ("x AND y > a.y AND z", "And([x AND z], [y > LAST(a.y)])"),
        ("y > a.y AND x AND z", "And([y > LAST(a.y)], [x AND z])"),
        ("x AND (y OR z) AND w = a.w", "And([x AND (y OR z)], [w = LAST(a.w)])"),
        (
            "x OR (y AND z = a.z AND w) OR v",
            "Or([x OR v], And([y AND w], [z = LAST(a.z)]))",
        ),
        ("NOT (x AND y = a.y)", "[NOT (x AND y = LAST(a.y))]"),
        ("x = a.x AND y = a.y", "And([x = LAST(a.x)], [y = LAST(a.y)])"),
        ("(x AND y = a.y) IS TRUE", "[(x AND y = LAST(a.y)) IS TRUE]"),
        ("x AND x AND y = a.y", "And([x AND x], [y = LAST(a.y)])"),
    ],
)
def test_split(text: str, structure: str) -> None:
    """Parts that need only the event become one leaf per AND and OR."""
    assert shown(boolean_structure(parse(text, steps=frozenset({"a"})))) == structure


def test_event_only_condition_stays_whole() -> None:
    """An event-only condition is one leaf: the expression itself, with its author's text."""
    e = parse("x  =  1  and  y")
    assert boolean_structure(e) == Leaf(e)
