"""Matches and timeouts that are columns, to records: all of them in a few compiled passes.

The bytes are those of :class:`spark_cep.codecs.output.outputs.OutputEncoder` and ids those of
:func:`spark_cep.match_ids.match_id`, which say what each part means and are what this is tested
against. Texts are laid out once in a column, in the form that each of the two wants; the compiled
loops put them and the numbers together.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from struct import Struct
from typing import NamedTuple

import numpy as np

from spark_cep.codecs.output.loops.result_bytes import (
    ID_LENGTH,
    put_long,
    write_identities,
    write_values,
)
from spark_cep.columns.byte_column import ByteColumn
from spark_cep.columns.compilation import I64
from spark_cep.match_ids import PERSON
from spark_cep.matcher.findings.results import ResultKind, Results

#: Of a number in Avro, and of all numbers and marks of one row, one step, one event.
_MOST_LONG = 10
_MOST_OF_ROW, _MOST_OF_STEP, _MOST_OF_EVENT = 80, 16, 40
_INTEGER = Struct(">q").pack


class _Rows(NamedTuple):
    """What both loops read: numbers of the rows, of their events, and of the rules' steps.

    ``step`` is a number among the steps of all rules, those of rule ``r`` begin at
    ``first_step[r]``; ``by_name`` are the steps of each rule in the order of their names.
    """

    rule: I64
    key: I64
    ends: I64
    step: I64
    topic: I64
    type: I64
    partition: I64
    offset: I64
    event_time: I64
    first_step: I64
    by_name: I64


class EncodedResults(NamedTuple):
    """Records of one topic. ``rule`` says which of ``rules`` (id, version) a record is of, ``key``
    which of ``keys`` is its key (-1: none)."""

    kind: ResultKind
    rules: list[tuple[str, int]]
    rule: I64
    key: I64
    keys: ByteColumn
    ids: ByteColumn
    values: ByteColumn

    def split(self, apart: Container[tuple[str, int]]) -> tuple[EncodedResults, EncodedResults]:
        """The records of other rules, and those of the rules ``apart``."""
        are = np.array([rule in apart for rule in self.rules], bool)[self.rule]
        return self.take(np.flatnonzero(~are)), self.take(np.flatnonzero(are))

    def take(self, rows: I64) -> EncodedResults:
        """These of the records."""
        return self._replace(
            rule=self.rule[rows],
            key=self.key[rows],
            ids=self.ids.take(rows),
            values=self.values.take(rows),
        )

    @property
    def sizes(self) -> I64:
        """Bytes of key and value of each record."""
        return self.values.lengths + self.keys.sizes(self.key)


def encode_results(results: Results, schema_id: int, emitted_at: int) -> EncodedResults:
    """All rows as records with the framing of ``schema_id``. ``emitted_at``: processing time in
    milliseconds."""
    used, rule = np.unique(results.rule, return_inverse=True)
    plans = [results.plans[number] for number in used.tolist()]
    used_keys, key = np.unique(results.key, return_inverse=True)
    texts = results.keys.take(used_keys).compacted()
    key_column = ByteColumn(texts.data, np.append(0, np.cumsum(texts.lengths)))
    keys = [
        None if null else key
        for key, null in zip(key_column.values(), texts.nulls.tolist(), strict=True)
    ]
    names = [[name.encode() for name in plan.steps] for plan in plans]
    counts = [len(each) for each in names]
    first_step = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    events = results.events
    owner = np.repeat(rule, np.diff(results.ends, prepend=0))
    rows = _Rows(
        *(
            np.ascontiguousarray(column, np.int64)
            for column in (
                rule, key, results.ends, results.step + first_step[owner],
                events.topic, events.type, events.partition, events.offset, events.time,
                first_step,
                [n + start for each, start in zip(names, first_step, strict=False)
                 for n in sorted(range(len(each)), key=each.__getitem__)],
            )
        )
    )  # fmt: skip
    topics = [topic.encode() for topic in results.names.topics]
    types = [None if name is None else name.encode() for name in results.names.types]
    steps = [name for each in names for name in each]
    rules = [(plan.rule.id, plan.rule.version) for plan in plans]
    ids = _ids(rows, rules, keys, steps, topics)
    pools = (
        ByteColumn.of([_text(name.encode()) + _long(version) for name, version in rules]),
        ByteColumn.of([_optional(text) for text in keys]),
        ByteColumn.of([_text(name) for name in steps]),
        ByteColumn.of([_text(name) for name in topics]),
        ByteColumn.of([_optional(name) for name in types]),
    )
    rule_pool, key_pool, step_pool, topic_pool, type_pool = pools
    room = _room(rows, pools)
    out, ends = np.empty(room, np.uint8), np.zeros(len(results) + 1, np.int64)
    write_values(
        *rows, results.starts, np.ascontiguousarray(results.time, np.int64),
        np.ascontiguousarray(results.already_matched, np.uint8),
        results.kind is ResultKind.TIMEOUT, emitted_at, schema_id,
        ids.data,
        *rule_pool, *key_pool, *step_pool, *topic_pool, *type_pool, out, ends,
    )  # fmt: skip
    key_numbers = np.where(texts.nulls, -1, np.arange(len(texts)))
    return EncodedResults(
        results.kind, rules, rows.rule, key_numbers[rows.key], key_column, ids,
        ByteColumn(out[: ends[-1]], ends),
    )  # fmt: skip


def _ids(
    rows: _Rows,
    rules: Iterable[tuple[str, int]],
    keys: Iterable[bytes | None],
    steps: Iterable[bytes],
    topics: Iterable[bytes],
) -> ByteColumn:
    """Match ids, as 32 hexadecimal digits each."""
    pools = (
        ByteColumn.of([_counted(name.encode()) + _INTEGER(version) for name, version in rules]),
        ByteColumn.of([b"\x00" if text is None else b"\x01" + _counted(text) for text in keys]),
        ByteColumn.of([_counted(name) for name in steps]),
        ByteColumn.of([_counted(name) for name in topics]),
    )
    rule_pool, key_pool, step_pool, topic_pool = pools
    out, ends = np.empty(_room(rows, pools), np.uint8), np.zeros(len(rows.rule) + 1, np.int64)
    write_identities(*rows, *rule_pool, *key_pool, *step_pool, *topic_pool, out, ends)
    digits = "".join(
        blake2b(identity, digest_size=ID_LENGTH // 2, person=PERSON).hexdigest()
        for identity in ByteColumn(out[: ends[-1]], ends).values()
    )
    return ByteColumn.of_length(np.frombuffer(digits.encode(), np.uint8), ID_LENGTH)


def _room(rows: _Rows, pools: Sequence[ByteColumn]) -> int:
    """Bytes that are enough for all rows."""
    rule_pool, key_pool, step_pool, topic_pool, *others = pools
    room = len(rows.rule) * (_MOST_OF_ROW + ID_LENGTH)
    room += int(rule_pool.lengths[rows.rule].sum() + key_pool.lengths[rows.key].sum())
    # A step is written once a row at most, and at most once for each event.
    room += int(step_pool.lengths[rows.step].sum()) + len(rows.step) * _MOST_OF_STEP
    room += int(topic_pool.lengths[rows.topic].sum()) + len(rows.step) * _MOST_OF_EVENT
    for type_pool in others:
        room += int(type_pool.lengths[rows.type].sum())
    return room


def _counted(text: bytes) -> bytes:
    return _INTEGER(len(text)) + text


def _text(text: bytes) -> bytes:
    return _long(len(text)) + text


def _optional(text: bytes | None) -> bytes:
    """Of Avro's union of null and string."""
    return b"\x00" if text is None else b"\x02" + _text(text)


@lru_cache(4096)
def _long(number: int) -> bytes:
    """A number as Avro writes it."""
    out = np.empty(_MOST_LONG, np.uint8)
    return out[: put_long(out, 0, number)].tobytes()
