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


#: By word, the bits of the conditions that have a part.
_Targets = dict[int, int]


@dataclass(slots=True)
class _Part:
    """A part of conditions. ``truth``: of one that reads no column; ``None``: that depends on the
    event, or fails, which each event says that is asked."""

    expression: Expression
    truth: bool | None
    targets: _Targets = field(default_factory=dict)

    @classmethod
    def of(cls, node: Node) -> _Part:
        """The part that a node is."""
        expression = expression_of(node)
        return cls(expression, None if expression.columns else _truth(expression))


class _LookedUp(NamedTuple):
    """A part that compares a text with ``constants``."""

    expression: Expression
    constants: frozenset[str]
    targets: _Targets


@dataclass
class _OfType:
    """The conditions on events of one record type, by their distinct parts. ``base``: conditions
    that may be true; ``look_ups``: by the vector with the text's number."""

    columns: RecordType
    base: NDArray[np.int64]
    look_ups: dict[int, list[_LookedUp]] = field(default_factory=dict)
    programs: list[tuple[Program, _Targets]] = field(default_factory=list)
    evaluated: list[tuple[Expression, _Targets]] = field(default_factory=list)


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
    # A program for each word that has conditions with the part.
    asked = [[(p, t) for p, targets in of.programs for t in targets.items()] for of in found]
    programs = [program for each in asked for program, _ in each]
    look_up = (part for each in found for parts in each.look_ups.values() for part in parts)
    named = [text for part in look_up for text in sorted(part.constants)]
    named += [text for program in programs for text in program.texts]
    texts = list(dict.fromkeys(named))
    numbers = {text: number for number, text in enumerate(texts)}
    look_ups: list[tuple[int, int]] = []
    masks: list[NDArray[np.int64]] = []
    for each in found:
        for vector, parts in each.look_ups.items():
            look_ups.append((vector, len(masks)))
            masks.extend(_answers(parts, each.columns, words, numbers))
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)])
    data = np.array(bytearray(b"".join(encoded) or b"\0"), np.uint8)
    return EventMasks(
        words,
        np.array([each.base for each in found], np.int64).reshape(-1, words),
        np.cumsum([0, *(len(each.look_ups) for each in found)]),
        np.array(look_ups, np.int64).reshape(-1, 2),
        np.array(masks, np.int64).reshape(-1, words),
        np.cumsum([0, *map(len, asked)]),
        np.array([target for each in asked for _, target in each], np.int64).reshape(-1, 2),
        _operations(programs, numbers),
        _numbered(vectors, numbers),
        data,
        ends,
        _borders(data, ends),
        _hashed(encoded),
        tuple(
            EvaluatedPart(part, of, tuple(targets.items()))
            for of, each in enumerate(found)
            for part, targets in each.evaluated
        ),
    )


def _of_type(of: RecordTypes, bits: Iterable[Bit], words: int, vectors: ColumnVectors) -> _OfType:
    """Return the conditions on events of the only one of these types."""
    ((_, _, columns),) = of.known
    found = _OfType(columns, np.zeros(words, np.int64))
    known: dict[Node, _Part] = {}
    for bit in bits:
        condition, expression = bit.condition, bit.condition.expression
        if of.of(condition.events, condition.of_type) is None:
            continue
        parts = []
        for node in () if expression is None else _parts(with_columns_of(expression.node, columns)):
            part = known.get(node)
            if part is None:
                part = known[node] = _Part.of(node)
            parts.append(part)
        if any(part.truth is False for part in parts):
            continue
        found.base[bit.word] |= bit.mask
        for part in parts:
            part.targets[bit.word] = part.targets.get(bit.word, 0) | bit.mask
    for part in known.values():
        if part.truth is None and part.targets:
            _ask(found, part.expression, part.targets, vectors)
    return found


def _truth(constant: Expression) -> bool | None:
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


def _ask(found: _OfType, part: Expression, targets: _Targets, vectors: ColumnVectors) -> None:
    """Add a part of conditions to the look-ups, or else to the programs, or to what is left."""
    compared = compared_texts(part.node, Typing(found.columns))
    kinds = [column_type(found.columns, path) for path in part.columns]
    if compared is not None and kinds == [STRING]:
        (path,) = part.columns
        parts = {each.part for each in compared} or {TextPart()}
        if len(parts) == 1:
            vector = vectors.number(path, parts.pop())
            constants = frozenset(each.constant for each in compared)
            found.look_ups.setdefault(vector, []).append(_LookedUp(part, constants, targets))
            return

    def vector_of(path: ColumnPath) -> int:
        kind = column_type(found.columns, path)
        assert kind is not None
        return vectors.value(path, kind)

    program = None
    if part.columns:
        program = event_program(part, found.columns, vector_of, vectors.number)
    if program is None:
        found.evaluated.append((part, targets))
    else:
        found.programs.append((program, targets))


def _answers(
    asked: Sequence[_LookedUp],
    columns: RecordType,
    words: int,
    numbers: Mapping[str, int],
) -> NDArray[np.int64]:
    """For NULL, other texts, and each constant, the words without the conditions that are not true
    then."""
    masks = np.full((OF_FIRST + len(numbers), words), -1, np.int64)
    used = set().union(*numbers)
    other = next(each for each in map(chr, range(1, 0xD800)) if each not in used)
    for expression, constants, targets in asked:
        (path,) = expression.columns
        true_of = bind(expression, {path: 0}, {}, columns)
        answers = np.full(len(masks), true_of((other,), ()) is True)
        answers[_OF_NULL] = true_of((None,), ()) is True
        for text in constants:
            answers[OF_FIRST + numbers[text]] = true_of((text,), ()) is True
        for word, mask in targets.items():
            masks[:, word] &= np.where(answers, -1, ~mask)
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
