"""What the event alone decides, for many events at once.

A condition that asks of one text column only which of some constants it is, is answered by looking
the text up, for all conditions on that column together; every other one is a program for the kernel
(:mod:`service.matcher.columnar.programs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import Condition
from service.matcher.columnar import kernel
from service.matcher.columnar.event_mask_loops import OF_FIRST, number_texts, set_masks
from service.matcher.columnar.kernel import Table
from service.matcher.columnar.lanes import Lanes
from service.matcher.columnar.programs import Program, event_program, texts_are_told_apart
from service.matcher.columnar.text_hash import text_hash
from service.pattern.expressions import ColumnPath, Expression, bind
from service.pattern.expressions.checking import Typing
from service.pattern.expressions.nodes import Call, Literal, Node
from service.pattern.types import STRING, RecordType, column_type

#: More programs than these take longer than Spark's generated code for the whole event.
_MOST_PROGRAMS = 12
#: Rows of a look-up's masks: of NULL, and of a text that is none of the constants.
_OF_NULL, _OF_OTHERS = 0, 1


class NoMasksError(Exception):
    """Some condition is not supported here; the text says which."""


class Bit(NamedTuple):
    """Where a condition's answer goes."""

    condition: Condition
    word: int
    mask: int


@dataclass
class _OfType:
    """What is asked of events of one record type."""

    columns: RecordType
    base: NDArray[np.int64]
    #: By the lane of the text.
    look_ups: dict[int, list[tuple[Expression, Bit]]] = field(default_factory=dict)
    programs: list[tuple[Program, Bit]] = field(default_factory=list)


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
    questions: Table
    operations: Table
    numbered: NDArray[np.int64]
    pool: NDArray[np.uint8]
    pool_ends: NDArray[np.int64]
    table: NDArray[np.int64]

    def of(
        self,
        types: NDArray[np.int32],
        data: NDArray[np.uint8],
        wholes: NDArray[np.int64],
        doubles: NDArray[np.float64],
        nulls: NDArray[np.uint8],
    ) -> NDArray[np.int64]:
        """The words of each event, of the record type ``types`` (below 0: none, all words 0).
        Writes the lanes with the numbers of texts."""
        out = np.zeros((len(types), self.words), np.int64)
        number_texts(self.numbered, data, self.pool, self.pool_ends, self.table, wholes, nulls)
        set_masks(
            types, self.base, self.look_up_ends, self.look_ups, self.masks, self.program_ends,
            self.targets, self.questions, self.operations, np.zeros(0, kernel.LOOK), wholes,
            doubles, nulls, np.zeros(kernel.STACK, kernel.VALUE), np.zeros(0, np.int32),
            np.zeros(0, kernel.NODE), out,
        )  # fmt: skip
        return out


def event_masks(types: RecordTypes, bits: Sequence[Bit], words: int, lanes: Lanes) -> EventMasks:
    """The conditions, for events of the record types, with columns in ``lanes``.

    Raises NoMasksError where one is not supported, or there are too many that are not look-ups.
    """
    found = [_of_type(RecordTypes((of,)), bits, words, lanes) for of in types.known]
    texts = tuple(dict.fromkeys(text for each in found for text in _texts_of(each)))
    numbers = {text: number for number, text in enumerate(texts)}
    look_ups: list[tuple[int, int, int]] = []
    masks: list[NDArray[np.int64]] = []
    for each in found:
        for lane, asked in each.look_ups.items():
            look_ups.append((lane, lanes.number(lane), len(masks)))
            masks.extend(_answers(asked, each.columns, words, numbers))
    programs = [program for each in found for program in each.programs]
    if len(programs) > _MOST_PROGRAMS * len(found):
        raise NoMasksError(f"more than {_MOST_PROGRAMS} conditions are no look-ups of text")
    questions, operations = _operations([program for program, _ in programs], numbers)
    encoded = [text.encode() for text in texts]
    pool = b"".join(encoded)
    ends = np.cumsum([0, *map(len, encoded)])
    data = np.array(bytearray(pool or b"\0"), np.uint8)
    return EventMasks(
        words,
        np.array([each.base for each in found], np.int64).reshape(-1, words),
        np.cumsum([0, *(len(each.look_ups) for each in found)]),
        np.array(look_ups, np.int64).reshape(-1, 3),
        np.array(masks, np.int64).reshape(-1, words),
        np.cumsum([0, *(len(each.programs) for each in found)]),
        np.array([(bit.word, bit.mask) for _, bit in programs], np.int64).reshape(-1, 2),
        questions,
        operations,
        np.array(list(lanes.numbers.items()), np.int64).reshape(-1, 2),
        data,
        ends,
        _hashed(data, ends),
    )


def _of_type(of: RecordTypes, bits: Iterable[Bit], words: int, lanes: Lanes) -> _OfType:
    """What is asked of the only one of these types."""
    ((_, name, columns),) = of.known
    found, typing = _OfType(columns, np.zeros(words, np.int64)), Typing(columns)

    def lane(path: ColumnPath) -> int:
        kind = column_type(columns, path)
        assert kind is not None
        value = lanes.value(path, kind)
        return lanes.number(value) if kind == STRING else value

    for bit in bits:
        condition, expression = bit.condition, bit.condition.expression
        if of.of(condition.events, condition.of_type) is None:
            continue
        if expression is None:
            found.base[bit.word] |= bit.mask
            continue
        kinds = [column_type(columns, path) for path in expression.columns]
        if not kinds:
            if bind(expression, {}, {})((), ()) is True:
                found.base[bit.word] |= bit.mask
        elif None in kinds:
            raise NoMasksError(f"{name} has not all columns of {expression.canonical}")
        elif kinds == [STRING] and texts_are_told_apart(expression.node, typing):
            (path,) = expression.columns
            found.look_ups.setdefault(lanes.value(path, STRING), []).append((expression, bit))
        elif program := event_program(expression, columns, lane):
            found.programs.append((program, bit))
        else:
            raise NoMasksError(f"the condition {expression.canonical}")
    return found


def _constants(node: Node) -> Iterator[str]:
    """The texts that a condition names."""
    if isinstance(node, Literal) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, Call):
        for argument in node.arguments:
            yield from _constants(argument)


def _texts_of(one: _OfType) -> Iterator[str]:
    for asked in one.look_ups.values():
        for expression, _ in asked:
            yield from _constants(expression.node)
    for program, _ in one.programs:
        yield from program.texts


def _answers(
    asked: Sequence[tuple[Expression, Bit]],
    columns: RecordType,
    words: int,
    numbers: Mapping[str, int],
) -> NDArray[np.int64]:
    """The words of NULL, of other texts, and of each constant."""
    masks = np.zeros((OF_FIRST + len(numbers), words), np.int64)
    other = "".join(numbers) + "+"
    for expression, bit in asked:
        (path,) = expression.columns
        true_of = bind(expression, {path: 0}, {}, columns)
        if true_of((None,), ()) is True:
            masks[_OF_NULL, bit.word] |= bit.mask
        if true_of((other,), ()) is True:
            masks[_OF_OTHERS:, bit.word] |= bit.mask
        for text in set(_constants(expression.node)):
            row = OF_FIRST + numbers[text]
            masks[row, bit.word] &= ~bit.mask
            if true_of((text,), ()) is True:
                masks[row, bit.word] |= bit.mask
    return masks


def _operations(programs: Sequence[Program], numbers: Mapping[str, int]) -> tuple[Table, Table]:
    questions: list[tuple[int, int, int, int]] = []
    operations: list[tuple[int, float, int, int]] = []
    for program in programs:
        first = len(operations)
        for each in program.operations:
            row = each.row
            if each.code == kernel.TEXT:
                row = (numbers[program.texts[each.operand]], *row[1:])
            operations.append(row)
        questions.append((kernel.FOREVER, first, len(operations), 0))
    return np.array(questions, kernel.QUESTION), np.array(operations, kernel.OPERATION)


def _hashed(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of texts at the places where their hashes lead; -1: none."""
    count = len(ends) - 1
    table = np.full(1 << max(1, (2 * count).bit_length()), -1, np.int64)
    for number in range(count):
        place = int(text_hash(data, ends[number], ends[number + 1])) & len(table) - 1
        while table[place] >= 0:
            place = place + 1 & len(table) - 1
        table[place] = number
    return table
