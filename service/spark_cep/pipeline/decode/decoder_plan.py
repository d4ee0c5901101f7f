"""The decoder of a plan, made on the driver at each start of the query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from spark_cep.codecs.record_reader import InputType, RecordFormat
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning, RuleSetPlan, Slot
from spark_cep.compiler.slot_types import slot_type
from spark_cep.documents.nearest import instead
from spark_cep.errors import SchemaError
from spark_cep.event_times import ISO_TEXT, KAFKA_TIMESTAMP
from spark_cep.pattern.expressions import ColumnPath, Expression
from spark_cep.pattern.expressions.canonical import expression as expression_of
from spark_cep.pattern.expressions.nodes import Cast, Column, Literal
from spark_cep.pattern.expressions.structure import with_columns_of
from spark_cep.pattern.types import (
    BIGINT,
    DOUBLE,
    FLOAT,
    INT,
    KAFKA,
    NULL,
    STRING,
    TIMESTAMP,
    DecimalType,
    RecordType,
    SqlType,
    column_type,
    is_of_kafka,
)
from spark_cep.pipeline.decode.decoder import Decoder
from spark_cep.pipeline.decode.decoder_parts import (
    Concerned,
    DecodedAtom,
    DecodedCondition,
    Part,
    SlotVectors,
    TimeColumn,
)
from spark_cep.pipeline.decode.evaluation import ColumnVector, Evaluation
from spark_cep.pipeline.decode.kafka_columns import KafkaColumns
from spark_cep.pipeline.decode.keys import KeyPart
from spark_cep.pipeline.decode.relevance import relevance
from spark_cep.pipeline.wire.event_packets import place_of, words_of
from spark_cep.programs.event_masks import Bit, EventMasks, event_masks


@dataclass(frozen=True)
class DecodeOptions:
    """See :class:`spark_cep.pipeline.decode.decoder.Decoder`."""

    key_groups: int
    max_ahead_ms: int | None
    keep_all: bool


def decoder_for(plan: RuleSetPlan, schemas: RecordFormat, options: DecodeOptions) -> Decoder:
    """The decoder for a plan.

    Raises SchemaError where columns are not of types that can be read.
    """
    return _Plan(plan, schemas).decoder(options)


def check_columns(plan: RuleSetPlan, schemas: RecordFormat) -> None:
    """Raise SchemaError where :func:`decoder_for` would for any writer."""
    _Plan(plan, schemas)


def record_types(schemas: RecordFormat) -> RecordTypes:
    """The record types that are read."""
    return RecordTypes(tuple((t.input, t.name, t.columns) for t in schemas.types))


class _Plan:
    def __init__(self, plan: RuleSetPlan, schemas: RecordFormat) -> None:
        self._plan, self._schemas = plan, schemas
        self._types = record_types(schemas)
        self._columns = [columns for _, _, columns in self._types.known]
        self._vectors = ColumnVectors()
        self._bits: list[Bit] = []
        self._parts: list[Part] = []
        first = 0
        for number, part in enumerate(plan.partitionings):
            self._parts.append(self._part(number, first, part))
            for bit, condition in enumerate(part.conditions):
                word, mask = place_of(bit)
                self._bits.append(Bit(condition, first + word, mask))
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
        kafka = self._kafka()
        return Decoder(
            self._schemas.reader(wanted, self._vectors), options.key_groups, options.max_ahead_ms,
            options.keep_all, tuple(self._times), masks, conditions, tuple(self._parts),
            kafka,
        )  # fmt: skip

    def _kafka(self) -> KafkaColumns:
        """The columns of Kafka's own among those that have vectors."""
        wanted = {path[1]: at for (path, _), at in self._vectors.values.items() if path[0] == KAFKA}
        headers = wanted.get("headers", -1)
        return KafkaColumns(
            wanted,
            -1 if headers < 0 else self._vectors.reader(headers),
            tuple(is_of_kafka(columns, (KAFKA,)) for columns in self._columns),
        )

    def _part(self, number: int, first_word: int, part: Partitioning) -> Part:
        inputs = [t.input for t in self._schemas.types]
        reads = [part.reads(name) for name in inputs]
        words = words_of(len(part.conditions))
        return Part(
            number,
            first_word,
            words,
            tuple(self._key(expression, reads) for expression in part.key),
            tuple(map(part.needs_key, inputs)),
            tuple(map(part.takes_null, inputs)),
            tuple(self._slot(slot) for slot in part.slots),
            relevance(part.rules, words),
            relevance(part.rules[: len(part.step_plans)], words),
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

    def _event_time(self, event_type: InputType) -> TimeColumn:
        unit, name = event_type.event_time_unit, event_type.event_time
        if name == KAFKA_TIMESTAMP:
            return TimeColumn(None, "millis")
        path = tuple(name.split("."))
        columns = self._columns[event_type.number]
        kind = column_type(columns, path)
        if kind in (TIMESTAMP, INT, BIGINT) and unit != ISO_TEXT:
            return TimeColumn(ColumnVector.of(path, kind, self._vectors), unit)
        text = ColumnVector.of(path, STRING, self._vectors) if kind == STRING else None
        if text is not None and unit == ISO_TEXT:
            return TimeColumn(text, unit, text)
        has_unit = unit not in ("auto", ISO_TEXT) if kind == STRING else unit != ISO_TEXT
        if has_unit and (kind in (FLOAT, DOUBLE, STRING) or isinstance(kind, DecimalType)):
            number = expression_of(Cast(Column(path), BIGINT))
            return TimeColumn(Evaluation.over(number, columns, self._vectors), unit, text)
        raise SchemaError(_no_time(event_type, kind, columns))

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
            yield {
                path: kind
                for path, kind in found
                if kind is not None and kind != NULL and not is_of_kafka(columns, path)
            }

    def _conditions(self, masks: EventMasks) -> tuple[DecodedCondition, ...]:
        """The parts of conditions that are evaluated."""
        atoms = self._atoms()
        by_word: dict[int, list[int]] = {}
        for bit in self._bits:
            by_word.setdefault(bit.word, []).append(bit.mask)
        return tuple(
            DecodedCondition(
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

    def _atoms(self) -> Mapping[tuple[int, int], tuple[DecodedAtom, ...]]:
        """Return the conditions of each bit. Of versions that run side by side and share a bit, the
        one that does not drain."""
        found: dict[tuple[int, int], dict[tuple[str, str | None, str], DecodedAtom]] = {
            (bit.word, bit.mask): {} for bit in self._bits
        }
        for part, vectors in zip(self._plan.partitionings, self._parts, strict=True):
            for rule in part.rules:
                for atom, bit in zip(rule.plan.event_atoms, rule.bits, strict=True):
                    word, mask = place_of(bit)
                    of, text = rule.plan.rule, str(atom)
                    # What drains comes last.
                    found[vectors.first_word + word, mask].setdefault(
                        (of.id, atom.step, text), DecodedAtom(of.id, of.version, atom.step, text)
                    )
        return {where: tuple(each.values()) for where, each in found.items()}


def _no_time(event_type: InputType, kind: SqlType | None, columns: RecordType) -> str:
    """Why a column cannot be the event time."""
    if kind is None:
        return (
            f"input {event_type.input}: the event time {event_type.event_time} is no column of"
            f" {event_type.name}; {instead(event_type.event_time, columns.fields, 'columns')}; or"
            f" {KAFKA_TIMESTAMP}, the time of the Kafka record"
        )
    setting = f"inputs.{event_type.input}.event_time_unit"
    if kind == STRING:
        allowed = (
            f"set {setting}, or give --event-time {event_type.event_time}:UNIT: {ISO_TEXT} for text"
            " as 2026-01-31T12:00:00.000Z, or millis, micros or seconds for whole numbers in text"
        )
    elif event_type.event_time_unit == ISO_TEXT:
        allowed = f"{setting}: {ISO_TEXT} is for text; leave it out, or name a column of text"
    else:
        allowed = (
            "allowed is a timestamp (timestamp-millis, timestamp-micros), a number (with"
            f" {setting}: millis, micros or seconds), or text ({setting}: {ISO_TEXT})"
        )
    return (
        f"input {event_type.input}: the event time {event_type.event_time} of {event_type.name} is"
        f" {kind}; {allowed}"
    )
