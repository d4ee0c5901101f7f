"""What the event alone decides, for many events at once.

A condition is true where all parts of it that AND joins are. A part that asks of one text only
which of some constants it is, or begins or ends with, is answered by looking the text up, for all
conditions together; every other one is a program for the kernel
(:mod:`service.matcher.columnar.programs`), which runs where what was looked up is true.
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
from service.matcher.columnar.lanes import Lanes, TextPart
from service.matcher.columnar.programs import Program, event_program
from service.matcher.columnar.text_hash import text_hash
from service.matcher.columnar.text_parts import compared_texts
from service.pattern.expressions import ColumnPath, Expression, bind
from service.pattern.expressions.canonical import expression as expression_of
from service.pattern.expressions.checking import Typing
from service.pattern.expressions.like import Place
from service.pattern.expressions.nodes import Call, Node
from service.pattern.types import STRING, RecordType, column_type

#: With more programs for one event, and parts of texts to look up, Spark's code is as quick.
_MOST_COMPARED = 64
#: So many programs are passed by at little cost.
_MOST_WRITTEN = 512
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
    """What is asked of events of one record type. ``base``: conditions that may be true."""

    columns: RecordType
    base: NDArray[np.int64]
    #: By the lane with the text's number; with the constants that a part compares.
    look_ups: dict[int, list[tuple[Expression, set[str], Bit]]] = field(default_factory=dict)
    #: By the part of a condition and the word, with the bits of the conditions that have it.
    programs: dict[tuple[Node, int], tuple[Program, int]] = field(default_factory=dict)


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
    programs = [program for each in found for program, _ in each.programs.values()]
    if len(programs) > _MOST_WRITTEN:
        raise NoMasksError(f"more than {_MOST_WRITTEN} parts of conditions are no look-ups of text")
    look_up = (part for each in found for asked in each.look_ups.values() for part in asked)
    named = [text for _, constants, _ in look_up for text in sorted(constants)]
    named += [text for program in programs for text in program.texts]
    texts = list(dict.fromkeys(named))
    numbers = {text: number for number, text in enumerate(texts)}
    searched = sum(part.place != Place.WHOLE for _, part in lanes.numbers)
    look_ups: list[tuple[int, int]] = []
    masks: list[NDArray[np.int64]] = []
    for each in found:
        answers = {
            lane: _answers(asked, each.columns, words, numbers)
            for lane, asked in each.look_ups.items()
        }
        if searched + _most_that_run(each, answers.values()) > _MOST_COMPARED:
            raise NoMasksError(
                f"more than {_MOST_COMPARED} parts of conditions on one event are no look-ups of"
                " whole texts"
            )
        for lane, rows in answers.items():
            look_ups.append((lane, len(masks)))
            masks.extend(rows)
    questions, operations = _operations(programs, numbers)
    encoded = [text.encode() for text in texts]
    pool = b"".join(encoded)
    ends = np.cumsum([0, *map(len, encoded)])
    data = np.array(bytearray(pool or b"\0"), np.uint8)
    return EventMasks(
        words,
        np.array([each.base for each in found], np.int64).reshape(-1, words),
        np.cumsum([0, *(len(each.look_ups) for each in found)]),
        np.array(look_ups, np.int64).reshape(-1, 2),
        np.array(masks, np.int64).reshape(-1, words),
        np.cumsum([0, *(len(each.programs) for each in found)]),
        np.concatenate([np.zeros((0, 2), np.int64), *map(_targets, found)]),
        questions,
        operations,
        _numbered(lanes, numbers),
        data,
        ends,
        _hashed(data, ends),
    )


def _of_type(of: RecordTypes, bits: Iterable[Bit], words: int, lanes: Lanes) -> _OfType:
    """What is asked of the only one of these types."""
    ((_, name, columns),) = of.known
    found = _OfType(columns, np.zeros(words, np.int64))
    for bit in bits:
        condition, expression = bit.condition, bit.condition.expression
        if of.of(condition.events, condition.of_type) is None:
            continue
        parts = [] if expression is None else [*_parts(expression.node)]
        asked = [expression_of(part) for part in parts]
        for part in asked:
            if any(column_type(columns, path) is None for path in part.columns):
                raise NoMasksError(f"{name} has not all columns of {part.canonical}")
        constant = [part for part in asked if not part.columns]
        if all(bind(part, {}, {})((), ()) is True for part in constant):
            found.base[bit.word] |= bit.mask
            for part in asked:
                if part.columns:
                    _ask(found, part, bit, lanes)
    return found


def _parts(node: Node) -> Iterator[Node]:
    """What a condition joins with AND."""
    if isinstance(node, Call) and node.operator == "AND":
        for argument in node.arguments:
            yield from _parts(argument)
    else:
        yield node


def _ask(found: _OfType, part: Expression, bit: Bit, lanes: Lanes) -> None:
    """Add a part of a condition to the look-ups, or else to the programs."""
    compared = compared_texts(part.node, Typing(found.columns))
    kinds = [column_type(found.columns, path) for path in part.columns]
    if compared is not None and kinds == [STRING]:
        (path,) = part.columns
        parts = {each.part for each in compared} or {TextPart()}
        if len(parts) == 1:
            lane = lanes.number(path, parts.pop())
            constants = {each.constant for each in compared}
            found.look_ups.setdefault(lane, []).append((part, constants, bit))
            return
    key = part.node, bit.word
    if key not in found.programs:

        def lane_of(path: ColumnPath) -> int:
            kind = column_type(found.columns, path)
            assert kind is not None
            return lanes.value(path, kind)

        program = event_program(part, found.columns, lane_of, lanes.number)
        if program is None:
            raise NoMasksError(f"the condition {part.canonical}")
        found.programs[key] = program, 0
    program, mask = found.programs[key]
    found.programs[key] = program, mask | bit.mask


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


def _targets(one: _OfType) -> NDArray[np.int64]:
    """Of each program the word and the bits of the conditions that have it."""
    targets = [(word, mask) for (_, word), (_, mask) in one.programs.items()]
    return np.array(targets, np.int64).reshape(-1, 2)


def _most_that_run(one: _OfType, answers: Iterable[NDArray[np.int64]]) -> int:
    """How many programs can run for an event, as far as one look-up alone can tell."""
    word, mask = _targets(one).T
    run = [int(((rows[:, word] & mask) != 0).sum(axis=1).max()) for rows in answers]
    return min([len(one.programs), *run])


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


def _numbered(lanes: Lanes, numbers: Mapping[str, int]) -> NDArray[np.int64]:
    """The lanes of texts and of numbers, the part's place, and its length or its text's number."""
    rows = []
    for (text, part), lane in lanes.numbers.items():
        argument = numbers[part.text] if part.place == Place.ANYWHERE else part.length
        rows.append((text, lane, part.place, argument))
    return np.array(rows, np.int64).reshape(-1, 4)


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
