"""A plan's program as a drawing, for the writers of :mod:`spark_cep.compiler.explain.drawing`."""

from __future__ import annotations

from collections.abc import Iterator

from spark_cep.compiler.explain.drawing import Drawing, DrawnEdge, DrawnState
from spark_cep.compiler.explain.wording import window_in_words
from spark_cep.compiler.plan import Action, StateKind
from spark_cep.compiler.row_pattern.plan import RowPatternPlan
from spark_cep.compiler.row_pattern.program import Done, End, Instruction, Label, Split
from spark_cep.errors import printable
from spark_cep.pattern.tree import Within


def draw_program(plan: RowPatternPlan, title: str) -> Drawing:
    """The drawing of ``plan``: a state an instruction, an edge a way on."""
    instructions = plan.program.instructions
    lines = [printable(line) for line in plan.program.lines]
    return Drawing(
        title=title,
        states=tuple(
            DrawnState(at, _kind(at, each), (lines[at], *_condition(plan, each)))
            for at, each in enumerate(instructions)
        ),
        edges=tuple(
            DrawnEdge(at, target, action, label)
            for at, each in enumerate(instructions)
            for target, action, label in _edges(plan, at, each)
        ),
        notes=tuple(_notes(plan)),
    )


def _notes(plan: RowPatternPlan) -> Iterator[str]:
    yield printable(f"pattern: {plan.query.pattern}")
    window = window_in_words(Within(plan.query.within_ms))
    if window:
        yield f"window: {window}"
    _, after = plan.heading
    yield printable(after)


def _kind(at: int, instruction: Instruction) -> StateKind:
    if isinstance(instruction, Done):
        return StateKind.FINAL
    if isinstance(instruction, End):
        return StateKind.PENDING
    return StateKind.NORMAL if at else StateKind.START


def _condition(plan: RowPatternPlan, instruction: Instruction) -> Iterator[str]:
    if isinstance(instruction, Label):
        condition = plan.query.defines.get(plan.program.variables[instruction.variable])
        yield "any row" if condition is None else condition.canonical


def _edges(
    plan: RowPatternPlan, at: int, instruction: Instruction
) -> Iterator[tuple[int, Action, str]]:
    if isinstance(instruction, Split):
        yield instruction.first, Action.PROCEED, "rather"
        yield instruction.second, Action.PROCEED, "else"
        return
    action = Action.TAKE if isinstance(instruction, Label) else Action.PROCEED
    for target in plan.program.successors(at):
        yield target, action, str(action.value)
