"""Conditions on the event alone, evaluated for many events at once.

A condition is true where all parts of it that AND joins are. A part that asks of one text only
which of some constants it is, or begins or ends with, is answered by looking the text up, for all
conditions together. Most others are programs for the kernel
(:mod:`spark_cep.programs.programs`), which run where what was looked up is true. What is left
(:class:`EvaluatedPart`) is for the caller to evaluate, where all of that is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_cep.columns.column_vectors import ColumnVectors, TextPart
from spark_cep.columns.compilation import FOREVER
from spark_cep.columns.loops.text_hash import place_hashes
from spark_cep.columns.vectors import Bytes
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Condition
from spark_cep.pattern.expressions import ColumnPath, Expression, bind
from spark_cep.pattern.expressions.canonical import expression as expression_of
from spark_cep.pattern.expressions.checking.types import Typing
from spark_cep.pattern.expressions.nodes import Call, Node
from spark_cep.pattern.expressions.structure import with_columns_of
from spark_cep.pattern.expressions.values.like import Place
from spark_cep.pattern.types import STRING, RecordType, column_type
from spark_cep.programs.event_programs import event_program
from spark_cep.programs.loops import expression_loop
from spark_cep.programs.loops.event_mask_loops import (
    OF_FIRST,
    border_texts,
    number_texts,
    set_masks,
)
from spark_cep.programs.loops.expression_loop import Programs
from spark_cep.programs.programs import Program
from spark_cep.programs.text_parts import compared_texts

#: Rows of a look-up's masks: of NULL, and of a text that is none of the constants.
_OF_NULL, _OF_OTHERS = 0, 1


class Bit(NamedTuple):
    """The bit in which the result of a condition is stored."""

    condition: Condition
    word: int
    mask: int


@dataclass
class _OfType:
    """The conditions on events of one record type. ``base``: conditions that may be true."""

    columns: RecordType
    base: NDArray[np.int64]
    #: By the vector with the text's number; with the constants that a part compares.
    look_ups: dict[int, list[tuple[Expression, set[str], Bit]]] = field(default_factory=dict)
    #: By the part of a condition and the word, with the bits of the conditions that have it.
    programs: dict[tuple[Node, int], tuple[Program, int]] = field(default_factory=dict)
    #: By the part of a condition and the word, the bits of the conditions that have it.
    evaluated: dict[Expression, dict[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class EvaluatedPart:
    """A part of conditions that neither look-ups nor programs answer, of events of record type
    ``type``; ``targets``: words and bits of the conditions that have it."""

    expression: Expression
    type: int
    targets: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class EventMasks:
    """The conditions as arrays; see :func:`event_masks`."""

    words: int
    base: NDArray[np.int64]
    look_up_ends: NDArray[np.int64]
    look_ups: NDArray[np.int64]
    masks: NDArray[np.int64]
    program_ends: NDArray[np.int64]
    targets: NDArray[np.int64]
    programs: Programs
    numbered: NDArray[np.int64]
    pool: NDArray[np.uint8]
    pool_ends: NDArray[np.int64]
    borders: NDArray[np.int64]
    table: NDArray[np.int64]
    evaluated: tuple[EvaluatedPart, ...]

    def of(
        self,
        types: NDArray[np.int32],
        data: NDArray[np.uint8],
        wholes: NDArray[np.int64],
        doubles: NDArray[np.float64],
        nulls: NDArray[np.uint8],
    ) -> NDArray[np.int64]:
        """The words of each event, of the record type ``types`` (below 0: none, all words 0), as
        if all parts that are evaluated were true. Writes the vectors with the numbers of texts."""
        out = np.zeros((len(types), self.words), np.int64)
        number_texts(
            self.numbered, data, self.pool, self.pool_ends, self.borders, self.table, wholes, nulls
        )
        set_masks(
            types, self.base, self.look_up_ends, self.look_ups, self.masks, self.program_ends,
            self.targets, self.programs, expression_loop.Columns(wholes, doubles, nulls),
            np.zeros(expression_loop.STACK, expression_loop.VALUE), out,
        )  # fmt: skip
        return out


def event_masks(
    types: RecordTypes, bits: Sequence[Bit], words: int, vectors: ColumnVectors
) -> EventMasks:
    """The conditions, for events of the record types, with columns in ``vectors``."""
    found = [_of_type(RecordTypes((of,)), bits, words, vectors) for of in types.known]
    programs = [program for each in found for program, _ in each.programs.values()]
    look_up = (part for each in found for asked in each.look_ups.values() for part in asked)
    named = [text for _, constants, _ in look_up for text in sorted(constants)]
    named += [text for program in programs for text in program.texts]
    texts = list(dict.fromkeys(named))
    numbers = {text: number for number, text in enumerate(texts)}
    look_ups: list[tuple[int, int]] = []
    masks: list[NDArray[np.int64]] = []
    for each in found:
        for vector, asked in each.look_ups.items():
            look_ups.append((vector, len(masks)))
            masks.extend(_answers(asked, each.columns, words, numbers))
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)])
    data = np.array(bytearray(b"".join(encoded) or b"\0"), np.uint8)
    return EventMasks(
        words,
        np.array([each.base for each in found], np.int64).reshape(-1, words),
        np.cumsum([0, *(len(each.look_ups) for each in found)]),
        np.array(look_ups, np.int64).reshape(-1, 2),
        np.array(masks, np.int64).reshape(-1, words),
        np.cumsum([0, *(len(each.programs) for each in found)]),
        # For each program, the word and the bits of its conditions.
        np.array(
            [(word, mask) for o in found for (_, word), (_, mask) in o.programs.items()], np.int64
        ).reshape(-1, 2),
        _operations(programs, numbers),
        _numbered(vectors, numbers),
        data,
        ends,
        _borders(data, ends),
        _hashed(encoded),
        tuple(
            EvaluatedPart(part, of, tuple(targets.items()))
            for of, each in enumerate(found)
            for part, targets in each.evaluated.items()
        ),
    )


def _of_type(of: RecordTypes, bits: Iterable[Bit], words: int, vectors: ColumnVectors) -> _OfType:
    """Return the conditions on events of the only one of these types."""
    ((_, _, columns),) = of.known
    found = _OfType(columns, np.zeros(words, np.int64))
    for bit in bits:
        condition, expression = bit.condition, bit.condition.expression
        if of.of(condition.events, condition.of_type) is None:
            continue
        node = None if expression is None else with_columns_of(expression.node, columns)
        parts = [] if node is None else [expression_of(part) for part in _parts(node)]
        if all(part.columns or _may_hold(part) is not False for part in parts):
            found.base[bit.word] |= bit.mask
            for part in parts:
                if part.columns:
                    _ask(found, part, bit, vectors)
                elif _may_hold(part) is None:
                    _evaluate(found, part, bit)
    return found


def _may_hold(constant: Expression) -> bool | None:
    """Return whether a part that reads no column is true; ``None``: that fails."""
    try:
        return bind(constant, {}, {})((), ()) is True
    except Exception:  # noqa: BLE001  each event that it is asked of says so
        return None


def _parts(node: Node) -> Iterator[Node]:
    """Yield the operands of a condition's top-level ANDs."""
    if isinstance(node, Call) and node.operator == "AND":
        for argument in node.arguments:
            yield from _parts(argument)
    else:
        yield node


def _ask(found: _OfType, part: Expression, bit: Bit, vectors: ColumnVectors) -> None:
    """Add a part of a condition to the look-ups, or else to the programs, or to what is left."""
    compared = compared_texts(part.node, Typing(found.columns))
    kinds = [column_type(found.columns, path) for path in part.columns]
    if compared is not None and kinds == [STRING]:
        (path,) = part.columns
        parts = {each.part for each in compared} or {TextPart()}
        if len(parts) == 1:
            vector = vectors.number(path, parts.pop())
            constants = {each.constant for each in compared}
            found.look_ups.setdefault(vector, []).append((part, constants, bit))
            return
    key = part.node, bit.word
    if key not in found.programs:

        def vector_of(path: ColumnPath) -> int:
            kind = column_type(found.columns, path)
            assert kind is not None
            return vectors.value(path, kind)

        program = None
        if part not in found.evaluated:
            program = event_program(part, found.columns, vector_of, vectors.number)
        if program is None:
            _evaluate(found, part, bit)
            return
        found.programs[key] = program, 0
    program, mask = found.programs[key]
    found.programs[key] = program, mask | bit.mask


def _evaluate(found: _OfType, part: Expression, bit: Bit) -> None:
    targets = found.evaluated.setdefault(part, {})
    targets[bit.word] = targets.get(bit.word, 0) | bit.mask


def _answers(
    asked: Sequence[tuple[Expression, set[str], Bit]],
    columns: RecordType,
    words: int,
    numbers: Mapping[str, int],
) -> NDArray[np.int64]:
    """For NULL, other texts, and each constant, the words without the conditions that are not true
    then."""
    masks = np.full((OF_FIRST + len(numbers), words), -1, np.int64)
    used = set().union(*numbers)
    other = next(each for each in map(chr, range(1, 0xD800)) if each not in used)
    for expression, constants, bit in asked:
        (path,) = expression.columns
        true_of = bind(expression, {path: 0}, {}, columns)
        answers = np.full(len(masks), true_of((other,), ()) is True)
        answers[_OF_NULL] = true_of((None,), ()) is True
        for text in constants:
            answers[OF_FIRST + numbers[text]] = true_of((text,), ()) is True
        masks[~answers, bit.word] &= ~bit.mask
    return masks


def _operations(programs: Sequence[Program], numbers: Mapping[str, int]) -> Programs:
    conditions: list[tuple[int, int, int, int, int]] = []
    operations: list[tuple[int, float, int, int]] = []
    for program in programs:
        first = len(operations)
        for each in program.operations:
            row = each.row
            if each.code == expression_loop.TEXT:
                row = (numbers[program.texts[each.operand]], *row[1:])
            operations.append(row)
        conditions.append((FOREVER, first, len(operations), 0, 0))
    return Programs(
        np.array(conditions, expression_loop.CONDITION),
        np.array(operations, expression_loop.OPERATION),
        np.zeros(0, expression_loop.LOOK),
    )


def _numbered(vectors: ColumnVectors, numbers: Mapping[str, int]) -> NDArray[np.int64]:
    """The vectors of texts and of numbers, a part's place, and its length or its text's number."""
    rows = []
    for (text, part), vector in vectors.numbers.items():
        argument = numbers[part.text] if part.place == Place.ANYWHERE else part.length
        rows.append((text, vector, part.place, argument))
    return np.array(rows, np.int64).reshape(-1, 4)


def _borders(pool: NDArray[np.uint8], pool_ends: NDArray[np.int64]) -> NDArray[np.int64]:
    borders = np.zeros(len(pool), np.int64)
    border_texts(pool, pool_ends, borders)
    return borders


def _hashed(texts: Sequence[bytes]) -> NDArray[np.int64]:
    """Numbers of texts at the places where their hashes lead; -1: none."""
    hashes, column = np.zeros(len(texts), np.int64), Bytes.of(texts)
    place_hashes(*column.pool, column.nulls, hashes)
    table = np.full(1 << max(1, (2 * len(texts)).bit_length()), -1, np.int64)
    for number, found in enumerate(hashes.tolist()):
        place = found & len(table) - 1
        while table[place] >= 0:
            place = place + 1 & len(table) - 1
        table[place] = number
    return table
