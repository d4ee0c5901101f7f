"""What the decoder must know for a plan, made on the driver at each start of the query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from spark_cep.codecs.avro.record_layout import Layouts, LayoutWriter, Wanted
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning, RuleSetPlan, Slot
from spark_cep.compiler.slot_types import slot_type
from spark_cep.config.topics import KAFKA_TIMESTAMP
from spark_cep.errors import SchemaError
from spark_cep.pattern.expressions import ColumnPath, Expression
from spark_cep.pattern.expressions.canonical import expression as expression_of
from spark_cep.pattern.expressions.nodes import Cast, Column, Literal
from spark_cep.pattern.expressions.structure import with_columns_of
from spark_cep.pattern.types import (
    BIGINT,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    DecimalType,
    SqlType,
    column_type,
)
from spark_cep.pipeline.decode.decoder import (
    Atom,
    Concerned,
    Condition,
    Decoder,
    EventTime,
    Part,
    SlotVectors,
)
from spark_cep.pipeline.decode.evaluation import ColumnVector, Evaluation
from spark_cep.pipeline.decode.keys import KeyPart
from spark_cep.pipeline.decode.relevance import relevance
from spark_cep.pipeline.decode.resolved_schemas import EventType, ResolvedSchemas, Writer
from spark_cep.pipeline.wire.event_packets import WORD_BITS
from spark_cep.programs.event_masks import Bit, EventMasks, event_masks


@dataclass(frozen=True)
class DecodeOptions:
    """See :class:`spark_cep.pipeline.decode.decoder.Decoder`."""

    key_groups: int
    max_ahead_ms: int | None
    keep_all: bool


def decoder_for(plan: RuleSetPlan, schemas: ResolvedSchemas, options: DecodeOptions) -> Decoder:
    """The decoder for a plan.

    Raises SchemaError where columns are not of types that can be read.
    """
    return _Plan(plan, schemas).decoder(options)


def check_columns(plan: RuleSetPlan, schemas: ResolvedSchemas) -> None:
    """Raise SchemaError where :func:`decoder_for` would for any writer."""
    _Plan(plan, schemas)


def record_types(schemas: ResolvedSchemas) -> RecordTypes:
    """The record types that are read."""
    return RecordTypes(tuple((t.input, t.name, t.columns) for t in schemas.types))


class _Plan:
    def __init__(self, plan: RuleSetPlan, schemas: ResolvedSchemas) -> None:
        self._plan, self._schemas = plan, schemas
        self._types = record_types(schemas)
        self._columns = [columns for _, _, columns in self._types.known]
        self._vectors = ColumnVectors()
        self._bits: list[Bit] = []
        self._parts: list[Part] = []
        first = 0
        for number, part in enumerate(plan.partitionings):
            self._parts.append(self._part(number, first, part))
            self._bits += [
                Bit(condition, first + place // WORD_BITS, 1 << place % WORD_BITS)
                for place, condition in enumerate(part.conditions)
            ]
            first += self._parts[-1].words
        self._words = max(1, first)
        self._times = [*map(self._event_time, schemas.types)]

    def decoder(self, options: DecodeOptions) -> Decoder:
        """The decoder."""
        masks = event_masks(self._types, self._bits, self._words, self._vectors)
        conditions = self._conditions(masks)
        wanted = [
            {path: (self._vectors.value(path, kind), kind) for path, kind in needed.items()}
            for needed in self._needed()
        ]
        kind_of_topic, other, readable = _topics(self._schemas)
        return Decoder(
            kind_of_topic, other, options.key_groups, options.max_ahead_ms,
            options.keep_all, _layouts(self._schemas, readable, wanted, self._vectors),
            tuple(self._times), masks, conditions, tuple(self._parts),
        )  # fmt: skip

    def _part(self, number: int, first_word: int, part: Partitioning) -> Part:
        inputs = [t.input for t in self._schemas.types]
        reads = [part.reads(name) for name in inputs]
        return Part(
            number,
            first_word,
            -(-len(part.conditions) // WORD_BITS),
            tuple(self._key(expression, reads) for expression in part.key),
            tuple(map(part.needs_key, inputs)),
            tuple(map(part.takes_null, inputs)),
            tuple(self._slot(slot) for slot in part.slots),
            relevance(part),
            part.keeps_payload,
        )

    def _key(self, part: Expression, reads: Sequence[bool]) -> KeyPart:
        of: list[ColumnVector | Evaluation | None] = []
        for columns, is_read in zip(self._columns, reads, strict=True):
            node = with_columns_of(part.node, columns)
            if not is_read or (isinstance(node, Literal) and node.value is None):
                of.append(None)
                continue
            if isinstance(node, Column):
                kind = column_type(columns, node.path)
                if kind in (STRING, INT, BIGINT):
                    of.append(ColumnVector.of(node.path, kind, self._vectors))
                    continue
            text = expression_of(Cast(node, STRING))
            of.append(Evaluation.over(text, columns, self._vectors))
        return KeyPart(tuple(of))

    def _slot(self, slot: Slot) -> SlotVectors:
        of: list[ColumnVector | None] = []
        for one, columns in zip(self._types.known, self._columns, strict=True):
            is_of = RecordTypes((one,)).of(slot.events, slot.of_type) is not None
            kind = column_type(columns, slot.path) if is_of else None
            if kind is None or kind == NULL:
                of.append(None)
            else:
                of.append(ColumnVector.of(slot.path, kind, self._vectors))
        return SlotVectors(slot_type(slot, self._types), tuple(of))

    def _event_time(self, event_type: EventType) -> EventTime:
        unit, name = event_type.event_time_unit, event_type.event_time
        if name == KAFKA_TIMESTAMP:
            return EventTime(None, "millis")
        path = tuple(name.split("."))
        columns = self._columns[event_type.number]
        kind = column_type(columns, path)
        if kind in (TIMESTAMP, INT, BIGINT):
            return EventTime(ColumnVector.of(path, kind, self._vectors), unit)
        if kind in (FLOAT, DOUBLE, STRING) or isinstance(kind, DecimalType):
            number = expression_of(Cast(Column(path), BIGINT))
            return EventTime(Evaluation.over(number, columns, self._vectors), unit)
        found = "no column of it" if kind is None else str(kind)
        raise SchemaError(
            f"input {event_type.input}: the event time {name} of {event_type.name} is {found};"
            " allowed is a column that is a timestamp or a number"
        )

    def _needed(self) -> Iterator[dict[ColumnPath, SqlType]]:
        """The columns that rules, keys and event time read, of each record type."""
        for event_type, one, columns in zip(
            self._schemas.types, self._types.known, self._columns, strict=True
        ):
            mine = RecordTypes((one,))
            paths = {tuple(event_type.event_time.split("."))}
            for part in self._plan.partitionings:
                for condition in part.conditions:
                    if condition.expression and mine.of(condition.events, condition.of_type):
                        paths |= condition.expression.columns
                paths |= {s.path for s in part.slots if mine.of(s.events, s.of_type)}
                if part.reads(event_type.input):
                    paths.update(*(expression.columns for expression in part.key))
            found = ((path, column_type(columns, path)) for path in sorted(paths))
            yield {path: kind for path, kind in found if kind is not None and kind != NULL}

    def _conditions(self, masks: EventMasks) -> tuple[Condition, ...]:
        """The parts of conditions that are evaluated."""
        atoms = self._atoms()
        by_word: dict[int, list[int]] = {}
        for bit in self._bits:
            by_word.setdefault(bit.word, []).append(bit.mask)
        return tuple(
            Condition(
                Evaluation.over(part.expression, self._columns[part.type], self._vectors),
                part.type,
                part.targets,
                tuple(
                    Concerned(word, bit, atoms[word, bit])
                    for word, mask in part.targets
                    for bit in by_word[word]
                    if bit & mask
                ),
            )
            for part in masks.evaluated
        )

    def _atoms(self) -> Mapping[tuple[int, int], tuple[Atom, ...]]:
        """Of each bit, what it stands for. Of versions that run side by side and have it in common,
        the one that does not drain."""
        found: dict[tuple[int, int], dict[tuple[str, str | None, str], Atom]] = {
            (bit.word, bit.mask): {} for bit in self._bits
        }
        for part, vectors in zip(self._plan.partitionings, self._parts, strict=True):
            for rule in part.rules:
                for atom, bit in zip(rule.plan.event_atoms, rule.bits, strict=True):
                    where = vectors.first_word + bit // WORD_BITS, 1 << bit % WORD_BITS
                    of, text = rule.plan.rule, str(atom)
                    # What drains comes last.
                    found[where].setdefault(
                        (of.id, atom.step, text), Atom(of.id, of.version, atom.step, text)
                    )
        return {where: tuple(each.values()) for where, each in found.items()}


def _topics(schemas: ResolvedSchemas) -> tuple[dict[str, int], int, list[frozenset[int]]]:
    """Kinds of topics: by name, of any other, and of each the record types that are read in it."""
    everywhere = {topic for t in schemas.types for topic in t.topics}
    kinds: dict[frozenset[int], int] = {}

    def kind(topic: str | None) -> int:
        read = frozenset(
            t.number for t in schemas.types if topic in t.topics or everywhere <= set(t.topics)
        )
        return kinds.setdefault(read, len(kinds))

    other = kind(None)
    return {topic: kind(topic) for topic in sorted(everywhere)}, other, list(kinds)


def _layouts(
    schemas: ResolvedSchemas,
    readable: Iterable[frozenset[int]],
    wanted: Sequence[Wanted],
    vectors: ColumnVectors,
) -> Layouts:
    """The layouts of all schema ids in all kinds of topics."""
    out = LayoutWriter(vectors)
    known: dict[tuple[int, int | None, int], int] = {}
    ids = sorted(schemas.ids)

    def record(writer: Writer, number: int) -> int:
        key = writer.id, writer.branch, number
        if key not in known:
            reader = schemas.types[number].reader
            known[key] = out.record(number, writer.schema, reader, wanted[number], writer.written)
        return known[key]

    def program(schema_id: int, read: frozenset[int]) -> int:
        if schema_id in schemas.unreadable:
            return out.unreadable
        writers = schemas.writers[schema_id]
        of: dict[int | None, int] = {}
        for writer in writers:
            if writer.type is not None and writer.type in read:
                of.setdefault(writer.branch, record(writer, writer.type))
        if not of or None in of:
            return of.get(None, out.not_read)
        branches = 1 + max(writer.branch or 0 for writer in writers)
        return out.union([of.get(branch, out.not_read) for branch in range(branches)])

    programs = [[program(each, read) for each in ids] for read in readable]
    return out.written(ids, programs)
