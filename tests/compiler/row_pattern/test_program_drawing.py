"""A program drawn: every instruction and every way on, for both writers."""

from __future__ import annotations

import pytest

from spark_cep.compiler.explain.dot_text import dot_text
from spark_cep.compiler.explain.mermaid_text import mermaid_text
from spark_cep.compiler.explain.row_pattern_drawing import draw_program
from spark_cep.compiler.plan import Action, StateKind
from spark_cep.compiler.row_pattern import plan_query
from spark_cep.pattern.sql import load_query
from tests.compiler.drawn_text import read_dot, read_mermaid

TEXT = """SELECT * FROM t MATCH_RECOGNIZE (
    PARTITION BY k PATTERN (^ A (B | C)* $) WITHIN INTERVAL '1' HOUR
    DEFINE B AS v > LAST(A.v), C AS v IS NULL)"""


def test_names_with_line_ends() -> None:
    """A quoted name may hold anything; a label is one line all the same."""
    text = TEXT.replace("| C)", '| "c\n\x1b")').replace("C AS", '"c\n\x1b" AS')
    drawing = draw_program(plan_query(load_query(text, "d.sql")), "rule")
    assert drawing.states[6].lines[0] == r"6 LABEL c\n\x1b"
    assert all(line.isprintable() for state in drawing.states for line in state.lines)
    assert all(note.isprintable() for note in drawing.notes)


def test_states_and_edges() -> None:
    """Conditions stand in the instructions that ask them; SPLIT says what it prefers."""
    drawing = draw_program(plan_query(load_query(TEXT, "d.sql")), "rule")
    assert [(state.lines, state.kind) for state in drawing.states] == [
        (("0 START",), StateKind.START),
        (("1 LABEL A", "any row"), StateKind.NORMAL),
        (("2 SPLIT 3, 8",), StateKind.NORMAL),
        (("3 SPLIT 4, 6",), StateKind.NORMAL),
        (("4 LABEL B", "v > RUNNING LAST(A.v)"), StateKind.NORMAL),
        (("5 JUMP 7",), StateKind.NORMAL),
        (("6 LABEL C", "v IS NULL"), StateKind.NORMAL),
        (("7 SPLIT 3, 8",), StateKind.NORMAL),
        (("8 END",), StateKind.PENDING),
        (("9 DONE",), StateKind.FINAL),
    ]
    assert [
        (edge.source, edge.target, edge.label) for edge in drawing.edges if edge.source in (1, 7)
    ] == [(1, 2, "take"), (7, 3, "rather"), (7, 8, "else")]
    assert drawing.edges[1].action is Action.TAKE
    assert drawing.notes == (
        "pattern: ^ A (B | C)* $",
        "window: less than 1 hour from the first event to the last",
        "one row per match, skip past last row",
    )


@pytest.mark.parametrize(
    ("write", "read"), [(dot_text, read_dot), (mermaid_text, read_mermaid)], ids=["dot", "mermaid"]
)
def test_written(write: object, read: object) -> None:
    """Nothing is lost in the text."""
    drawing = draw_program(plan_query(load_query(TEXT, "d.sql")), "rule")
    drawn = read(write([drawing]))  # type: ignore[operator]
    for state in drawing.states:
        assert drawn.states[f"r0s{state.number}"] == "\n".join(state.lines)
    assert drawn.edges == [
        (f"r0s{edge.source}", f"r0s{edge.target}", edge.label) for edge in drawing.edges
    ]
