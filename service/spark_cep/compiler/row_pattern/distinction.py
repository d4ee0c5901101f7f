"""The part of a thread's past that makes it different from another thread at the same instruction
and row.

From there on both take the same rows as the same variables, as long as each condition ahead says
the same of both; then they end alike, and the one that is less preferred can be dropped. A
condition says the same if all that it reads of the past is the same:

- a column of a row that is found by its variable (``LAST(A.x, 1)``): the rows that it may be found
  at, which are the last (or first) so many of the variable, are the same rows;
- CLASSIFIER of a row: the variables of these rows, and of the row that PREV and NEXT go to from
  there, are the same. PREV from a row that is not taken yet can reach back to rows that are;
- an aggregate: the rows of its variables are the same and, if its argument has CLASSIFIER, what
  they are matched as;
- the row under test, rows counted among all rows of the match, what PREV and NEXT reach from
  those, and MATCH_NUMBER are the same for both anyway.

Exclusions and measures do not matter: a thread that is dropped would never have been the match, nor
have kept another from being it, since the one before it ends the same way. So a pattern whose
conditions look at nothing but their row, and rows near it, has at most as many threads as its
program has instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spark_cep.compiler.row_pattern.program import Label, RowPatternProgram
from spark_cep.pattern.expressions import Expression
from spark_cep.pattern.expressions.nodes import ClassifierAt, ColumnAt, Pick, RowAggregate, RowValue


@dataclass(frozen=True, slots=True)
class Distinction:
    """The part of a thread's past that a condition reads: rows of ``variables``, none for all rows.

    ``pick`` and ``count`` say how many of them from which end, without ``pick`` it is all;
    ``labels``: what they, and the rows ``shift`` away, are matched as.
    """

    variables: tuple[str, ...]
    pick: Pick | None = None
    count: int = 0
    labels: bool = False
    shift: int = 0


def distinctions(
    program: RowPatternProgram, defines: Mapping[str, Expression]
) -> tuple[tuple[Distinction, ...], ...]:
    """For each place of the program, what the conditions that can be reached from there read.
    Places with the same have one tuple."""
    of_variable = [
        frozenset(_distinctions(defines[v].row_values) if v in defines else ())
        for v in program.variables
    ]
    every = sorted(frozenset[Distinction]().union(*of_variable), key=repr)
    # Sets as bits: there may be as many distinctions as places.
    bits = {each: 1 << number for number, each in enumerate(every)}
    read = [sum(bits[each] for each in found) for found in of_variable]
    ahead = [0] * len(program.instructions)
    changed = True
    while changed:
        changed = False
        for at in reversed(range(len(program.instructions))):
            instruction = program.instructions[at]
            found = ahead[at] | (
                read[instruction.variable] if isinstance(instruction, Label) else 0
            )
            for after in program.successors(at):
                found |= ahead[after]
            if found != ahead[at]:
                ahead[at], changed = found, True
    known = {
        found: tuple(each for each in every if found & bits[each]) for found in dict.fromkeys(ahead)
    }
    return tuple(known[found] for found in ahead)


def reads_rows_taken(value: RowValue) -> bool:
    """Return whether a condition with this value reads rows that it finds by their variables, or
    an aggregate: threads keep those."""
    if isinstance(value, ColumnAt | ClassifierAt):
        return value.position is not None and bool(value.position.variables)
    return isinstance(value, RowAggregate)


def _distinctions(values: Iterable[RowValue]) -> Iterable[Distinction]:
    for value in values:
        match value:
            case ColumnAt(position=position) if position.variables:
                yield Distinction(position.variables, position.pick, position.offset + 1)
            case ClassifierAt(position=position) if position is not None:
                count = position.offset + 1
                yield Distinction(
                    position.variables, position.pick, count, labels=True, shift=position.shift
                )
            case RowAggregate(variables=variables, arguments=arguments):
                labels = any(
                    isinstance(inner, ClassifierAt)
                    for each in arguments
                    for inner in each.row_values
                )
                if variables or labels:
                    yield Distinction(variables, labels=labels)
            case _:
                pass
