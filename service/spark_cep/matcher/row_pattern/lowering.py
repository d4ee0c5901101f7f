"""A plan as tables for the compiled loops.

A condition is taken apart at its top-level ANDs and ORs. What reads its row alone is a bit that is
computed before, as it is for rules of steps; any other part is a program for the expression machine
or one call of Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from spark_cep.columns.compilation import FOREVER, NONE, Table
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.row_pattern.distinction import Distinction, reads_rows_taken
from spark_cep.compiler.row_pattern.program import Done, End, Instruction, Jump, Label, Save, Split
from spark_cep.compiler.row_pattern.program import Start as StartAnchor
from spark_cep.matcher.row_pattern.leaf_programs import LeafProgram, Load, Registers, leaf_program
from spark_cep.matcher.row_pattern.loops import tables
from spark_cep.pattern.expressions import And, ColumnPath, Expression, Or, boolean_structure
from spark_cep.pattern.expressions import Leaf as Part
from spark_cep.pattern.expressions.nodes import (
    Column,
    ColumnAt,
    RowAggregate,
    RowPosition,
    RowValue,
)
from spark_cep.pattern.sql.statement import RowsPerMatch, SkipTo
from spark_cep.pattern.work import FOLD, FOLD_CALL, ROW_CALL, THREAD, TOTAL
from spark_cep.programs.loops import expression_loop

_MOST_BITS = 62
_ROWS = {
    RowsPerMatch.ONE_ROW: tables.ONE_ROW,
    RowsPerMatch.SHOW_EMPTY: tables.SHOW_EMPTY,
    RowsPerMatch.OMIT_EMPTY: tables.OMIT_EMPTY,
    RowsPerMatch.WITH_UNMATCHED: tables.WITH_UNMATCHED,
}
_SKIPS = {
    SkipTo.NEXT_ROW: tables.TO_NEXT_ROW,
    SkipTo.PAST_LAST_ROW: tables.PAST_LAST_ROW,
    SkipTo.FIRST: tables.TO_FIRST,
    SkipTo.LAST: tables.TO_LAST,
}


@dataclass(frozen=True, slots=True)
class RowPatternLimits:
    """The most rows and threads of an attempt, and the most steps of work of one row. An attempt
    that goes beyond is given up: no match begins at its first row."""

    rows: int = 10_000
    threads: int = 1_000
    work: int = 5_000_000


@dataclass(frozen=True)
class Lowered:
    """A plan's tables, as far as they do not depend on the rows.

    ``bits`` are the conditions on the row alone, by bit. ``calls`` are computed by Python.
    ``columns`` are the places, among the plan's, of the columns that programs read; ``texts``: the
    operations, by row, that have the number of a text.
    """

    program: tables.ProgramTables
    conditions: Table
    operations: Table
    bits: tuple[Expression, ...]
    calls: tuple[tuple[str, Expression], ...]
    columns: tuple[int, ...]
    texts: tuple[tuple[int, str], ...]


def lower(plan: RowPatternPlan, limits: RowPatternLimits) -> Lowered:
    """The tables of a plan."""
    return _ProgramLowering(plan).lowered(limits)


@dataclass
class _ProgramLowering:
    plan: RowPatternPlan
    bits: list[Expression] = field(default_factory=list)
    tests: list[tuple[int, int]] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    conditions: list[tuple[int, ...]] = field(default_factory=list)
    operations: list[tuple[int, float, int, int]] = field(default_factory=list)
    calls: list[tuple[str, Expression]] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    texts: list[tuple[int, str]] = field(default_factory=list)
    distinctions: list[tuple[int, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._places = {path: place for place, path in enumerate(self.plan.columns)}
        self._registers = Registers(self.plan.query.variables)
        self._spans: dict[int, tuple[int, int]] = {}

    def lowered(self, limits: RowPatternLimits) -> Lowered:
        """All of it."""
        query = self.plan.query
        variables = [
            self._variable(name, query.defines.get(name)) for name in self.plan.program.variables
        ]
        instructions = [
            self._instruction(each, distinctions)
            for each, distinctions in zip(
                self.plan.program.instructions, self.plan.distinctions, strict=True
            )
        ]
        ahead = list(dict.fromkeys(self._ahead()))
        target = self._registers.set_of(query.target) if query.target else 0
        registers = [
            (kind, variables, word, words)
            for (kind, variables, words), word in self._registers.found.items()
        ]
        kept = self._cost_of_registers()
        variables = [
            (bits, first, end, near, cost + kept, folds)
            for bits, first, end, near, cost, folds in variables
        ]
        clause = (
            FOREVER if query.within_ms is None else query.within_ms,
            limits.rows,
            limits.threads,
            limits.work,
            self.plan.reach,
            self._first_bits([bits for bits, *_ in variables]),
            THREAD,
            self.plan.program.width * THREAD,
            1 + kept if kept else 0,
            _ROWS[query.rows],
            _SKIPS[query.skip],
            target,
            self._registers.words,
            bool(self._registers.words or self._registers.aggregates),
            # There may be more threads than instructions otherwise; a limit of threads that is met
            # would not be, without those that fail.
            self._failures_last() and len(instructions) <= limits.threads,
            any(map(_reads_ahead, self._values())),
        )
        numbers = {name: number for number, name in enumerate(query.variables)}
        sets = np.zeros((len(self._registers.sets), len(numbers)), np.uint8)
        for row, names in zip(sets, self._registers.sets, strict=True):
            row[[numbers[name] for name in names or query.variables]] = 1
        program = tables.ProgramTables(
            np.array(instructions, tables.INSTRUCTION),
            np.array(variables, tables.VARIABLE),
            np.array(self.tests, tables.TEST),
            np.array(self.loads, tables.LOAD),
            np.array(registers, tables.REGISTER),
            np.array(list(self._registers.aggregates), tables.RUNNING),
            np.array(self.distinctions, tables.DISTINCTION),
            np.array(ahead, tables.AHEAD),
            np.array([clause], tables.CLAUSE),
            sets,
            np.zeros(len(query.variables), np.int64),
        )
        return Lowered(
            program,
            np.array(self.conditions, expression_loop.CONDITION),
            np.array(self.operations, expression_loop.OPERATION),
            tuple(self.bits),
            tuple(self.calls),
            tuple(self.columns),
            tuple(self.texts),
        )

    def _variable(self, name: str, condition: Expression | None) -> tuple[int, ...]:
        first, calls = len(self.tests), len(self.calls)
        if condition is None:
            return 0, first, first, first, 0, 0
        whole = boolean_structure(condition)
        needed = 0
        others: list[Part | And | Or] = []
        for part in whole.parts if isinstance(whole, And) else [whole]:
            bit = self._bit(part)
            if bit is None:
                others.append(part)
            else:
                needed |= bit
        # Programs of rows at a distance come first: they say of each attempt the same.
        far = [each for each in others if not is_near(each)]
        near = [each for each in others if is_near(each)]
        skips: list[int] = []
        ends = [first]
        for number, each in enumerate([*near, *far]):
            if number:
                skips.append(len(self.tests))
                self.tests.append((0, 0))
            before = len(self.calls)
            self._test(name, each)
            if number:
                self.tests.append((0, tables.OF_ALL))
            if number < len(near) and len(self.calls) == before and len(ends) == number + 1:
                ends.append(len(self.tests))
        for row in skips:
            self.tests[row] = len(self.tests), tables.PAST_NO
        asked = [test for test, code in self.tests[first:] if code == tables.OF_PROGRAM]
        operations = [end - begin for _, begin, end, *_ in map(self.conditions.__getitem__, asked)]
        cost = ROW_CALL * (len(self.calls) - calls) + len(self.tests) - first + sum(operations)
        values = {value for _, call in self.calls[calls:] for value in call.row_values}
        restored = sum(_fold_steps(value) for value in values if reads_rows_taken(value))
        return needed, first, len(self.tests), ends[-1], cost, restored

    def _cost_of_registers(self) -> int:
        """The steps of work of a row with what threads keep of their rows."""
        registers = self._registers
        return registers.words + len(registers.found) + TOTAL * len(registers.aggregates)

    def _bit(self, part: Part | And | Or) -> int | None:
        """The bit of a part that reads its row alone."""
        if not isinstance(part, Part) or not part.expression.is_event_only:
            return None
        if part.expression not in self.bits:
            if len(self.bits) == _MOST_BITS:
                return None
            self.bits.append(part.expression)
        return 1 << self.bits.index(part.expression)

    def _test(self, name: str, part: Part | And | Or) -> None:
        if isinstance(part, Part):
            self._leaf(name, part)
            return
        every = isinstance(part, And)
        skips = []
        for number, each in enumerate(part.parts):
            if number:
                skips.append(len(self.tests))
                self.tests.append((0, 0))
            self._test(name, each)
            if number:
                self.tests.append((0, tables.OF_ALL if every else tables.OF_ANY))
        for row in skips:
            self.tests[row] = len(self.tests), tables.PAST_NO if every else tables.PAST_YES

    def _leaf(self, name: str, part: Part) -> None:
        bit = self._bit(part)
        if bit is not None:
            self.tests.append((bit, tables.OF_BIT))
            return
        registers = self._registers
        mark = registers.words, dict(registers.found), dict(registers.aggregates)
        leaf = leaf_program(part.expression, self.plan.query.event, self._column, registers)
        if leaf is None:
            registers.words, registers.found, registers.aggregates = mark
            self.tests.append((len(self.calls), tables.OF_PYTHON))
            self.calls.append((name, part.expression))
        else:
            self.tests.append((len(self.conditions), tables.OF_PROGRAM))
            self._condition(leaf)

    def _column(self, path: ColumnPath) -> int:
        place = self._places[path]
        if place not in self.columns:
            self.columns.append(place)
        return self.columns.index(place)

    def _condition(self, leaf: LeafProgram) -> None:
        first, first_load = len(self.operations), len(self.loads)
        for each in leaf.program.operations:
            whole, double, code, operand = each.row
            kind = code & (expression_loop.DOUBLE - 1)
            if kind == expression_loop.TEXT:
                self.texts.append((len(self.operations), leaf.program.texts[each.operand]))
            if kind == expression_loop.LOOK_BACK:
                operand += first_load
            self.operations.append((whole, double, code, operand))
        self.loads += leaf.loads
        self.conditions.append((FOREVER, first, len(self.operations), 0, 0))

    def _instruction(
        self, instruction: Instruction, distinctions: Sequence[Distinction]
    ) -> tuple[int, int, int, int, int]:
        # Many instructions have one tuple, which may be as long as they are many.
        span = self._spans.get(id(distinctions))
        if span is None:
            first = len(self.distinctions)
            self.distinctions += [self._distinction(each) for each in distinctions]
            span = self._spans[id(distinctions)] = first, len(self.distinctions)
        return *_instruction(instruction), *span

    def _distinction(self, each: Distinction) -> tuple[int, ...]:
        variables = self._registers.set_of(each.variables)
        if each.labels:
            last = {"LAST": 1, "FIRST": 0, None: -1}[each.pick]
            return tables.SAME_LABELS, 0, each.count, variables, each.shift, last
        if each.pick is not None:
            word = self._registers.rows_word((each.pick, each.variables, each.count))
            return tables.SAME_WORDS, word, each.count, variables, 0, -1
        word = self._registers.word(tables.TRACE, each.variables, 1)
        return tables.SAME_ROWS, word, 1, variables, 0, -1

    def _ahead(self) -> Iterable[tuple[int, ...]]:
        """Rows behind their match's last that measures read."""
        for measure in self.plan.query.measures:
            for value in measure.expression.row_values:
                if isinstance(value, ColumnAt) and value.position.shift > 0:
                    yield self._ahead_of(value.position)

    def _ahead_of(self, position: RowPosition) -> tuple[int, ...]:
        every = not position.variables
        variables = NONE if every else self._registers.set_of(position.variables)
        first = position.pick == "FIRST"
        return variables, position.offset, position.shift, first, position.final

    def _failures_last(self) -> bool:
        """Return whether an attempt that has come to an instruction before a row fails if an
        earlier one failed from there: conditions read nothing but their row and rows before it.
        With ``NEXT`` threads wait at several rows; with ``$`` one comes to an instruction again,
        before the same row."""
        ends = any(isinstance(each, End) for each in self.plan.program.instructions)
        return not ends and all(map(_is_near_value, self._values()))

    def _values(self) -> Iterable[RowValue]:
        return (v for each in self.plan.query.defines.values() for v in each.row_values)

    def _first_bits(self, needed: Sequence[int]) -> int:
        """Bits of which the first row of a match has one; 0 where any row may be the first, or none
        is taken."""
        program, found = self.plan.program, 0
        if self.plan.query.within_ms == 0:
            return 0
        pending, seen = [0], {0}
        while pending:
            at = pending.pop()
            instruction = program.instructions[at]
            if isinstance(instruction, (Done, End)):
                return 0
            if isinstance(instruction, Label):
                bits = needed[instruction.variable]
                if not bits:
                    return 0
                # All of them are needed; one says enough.
                found |= bits & -bits
                continue
            new = set(program.successors(at)) - seen
            seen |= new
            pending += new
        return found


def is_near(part: Part | And | Or) -> bool:
    """Return whether a part reads only rows at a distance from its row, none behind it."""
    if not isinstance(part, Part):
        return all(map(is_near, part.parts))
    return all(map(_is_near_value, part.expression.row_values))


def _is_near_value(value: RowValue) -> bool:
    return (
        isinstance(value, ColumnAt)
        and replace(value.position, shift=0) == RowPosition()
        and value.position.shift <= 0
    )


def _fold_steps(value: RowValue) -> int:
    """The steps of work of a row with what Python makes of all rows."""
    given = value.arguments if isinstance(value, RowAggregate) else ()
    return FOLD if all(isinstance(each.node, Column) for each in given) else FOLD_CALL


def _reads_ahead(value: RowValue) -> bool:
    if isinstance(value, RowAggregate):
        return any(_reads_ahead(v) for each in value.arguments for v in each.row_values)
    return isinstance(value, ColumnAt) and value.position.shift > 0


_PLAIN: Mapping[type[Instruction], int] = {
    StartAnchor: tables.START,
    End: tables.END,
    Save: tables.SAVE,
    Done: tables.DONE,
}


def _instruction(instruction: Instruction) -> tuple[int, int, int]:
    match instruction:
        case Label(variable=variable):
            return tables.LABEL, variable, 0
        case Split(first=first, second=second):
            return tables.SPLIT, first, second
        case Jump(target=target):
            return tables.JUMP, target, 0
    return _PLAIN[type(instruction)], 0, 0
