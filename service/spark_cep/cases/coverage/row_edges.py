"""The edges of a pattern of rows: between variables, from the beginning, and to the match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.row_pattern.program import Done, Label
from spark_cep.model import Event, TakenEvent

#: From one variable to the next; ``None``: from the beginning, or to the match.
RowEdge = tuple[str | None, str | None]


def row_edges(plan: RowPatternPlan) -> list[RowEdge]:
    """The edges of the automaton. Places of a pattern with the same variable are one."""
    program = plan.program
    found: dict[RowEdge, None] = {}

    def add(variable: str | None, begin: int) -> None:
        for at in sorted(program.closure({begin})):
            instruction = program.instructions[at]
            if isinstance(instruction, Label):
                found[variable, program.variables[instruction.variable]] = None
            elif isinstance(instruction, Done) and variable is not None:
                found[variable, None] = None

    add(None, 0)
    for at, each in enumerate(program.instructions):
        if isinstance(each, Label):
            add(program.variables[each.variable], at + 1)
    return list(found)


def edge_text(edge: RowEdge) -> str:
    """An edge in words."""
    begin, end = edge
    first = "the beginning" if begin is None else begin
    return f"edge from {first} to {'the match' if end is None else end}"


def edges_taken(
    steps: Mapping[str, Sequence[Event | TakenEvent]], *, matched: bool
) -> Iterable[RowEdge]:
    """The edges that rows have gone, by their variables. The order of rows of one millisecond is
    not known, and so their edges are not."""
    rows = sorted((row.time, row.at, variable) for variable, rows in steps.items() for row in rows)
    known = [(time, variable) for time, _, variable in rows]
    for (one, begin), (other, end) in pairwise(known):
        if one != other:
            yield begin, end
    times = [time for time, _ in known]
    if known and times.count(times[0]) == 1:
        yield None, known[0][1]
    if known and matched and times.count(times[-1]) == 1:
        yield known[-1][1], None
