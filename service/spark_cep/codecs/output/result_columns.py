"""Results that are columns: their ids, and the columns that their fields are made of.

Ids are those of :mod:`spark_cep.match_ids`, which says what each part means and is what this is
tested against.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from spark_cep.codecs.output.loops.result_bytes import write_identities, write_row_identities
from spark_cep.columns.compilation import I32, I64
from spark_cep.columns.vectors import LENGTH_BITS, LENGTH_MASK, Bytes, texts_of
from spark_cep.compiler.plan import Plan
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.match_ids import PERSON, ROW_PERSON
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.findings.annotations import annotations_of_rows, measured
from spark_cep.matcher.findings.named_values import NamedValues
from spark_cep.matcher.findings.output_values import time_texts
from spark_cep.matcher.findings.result_rows import ResultRows
from spark_cep.matcher.findings.results import ResultKind, Results, step_names

#: Characters of a match id.
_ID_LENGTH = 32
#: Bytes of a number in what an id is the hash of.
_INTEGER = 8


class Chosen(NamedTuple):
    """A text of each row: its number among some texts; -1: none."""

    texts: Bytes
    numbers: I64

    @property
    def size(self) -> int:
        """Bytes of the texts of all rows."""
        return int(self.texts.sizes(self.numbers).sum())


class FieldColumns(ABC):
    """The columns that the fields of records are made of: numbers, and texts in UTF-8 by number.

    ``rules``: id and version of each rule, ``rule`` the number of a record's. ``topic``,
    ``partition`` and what follows are of ``events``, of which record ``i`` has those from
    ``ends[i - 1]`` to ``ends[i]``, taken for steps ``step``; the rest has none.
    """

    def __init__(
        self,
        kind: ResultKind,
        plans: Sequence[Plan | RowPatternPlan],
        rule: I32,
        keys: Bytes,
        key: I64,
        names: Names,
        events: EventTable,
    ) -> None:
        used, self.rule = np.unique(rule, return_inverse=True)
        self.plans = [plans[number] for number in used.tolist()]
        self.kind = kind
        self.rules = [(plan.rule.id, plan.rule.version) for plan in self.plans]
        self.rule_ids = texts_of([name for name, _ in self.rules])
        self.versions = np.array([version for _, version in self.rules], np.int64)
        self.version = self.versions[self.rule]
        used_keys, key = np.unique(key, return_inverse=True)
        self.keys = keys.take(used_keys)
        self.key = np.where(self.keys.nulls, -1, np.arange(len(self.keys)))[key]
        self.row = np.arange(len(rule))
        self.ends = self.taken = np.zeros(len(rule), np.int64)
        self.step = np.zeros(0, np.int64)
        self.topics = texts_of(names.topics)
        self.types, types = Bytes.numbered(
            None if name is None else name.encode() for name in names.types
        )
        self.topic, self.type = events.topic.astype(np.int64), types[events.type]
        self.partition = events.partition.astype(np.int64)
        self.offset, self.event_time = events.offset, events.time

    @property
    @abstractmethod
    def ids(self) -> Bytes:
        """The match ids in the records' headers; NULL for none."""

    def encoded(self, values: Bytes) -> EncodedResults:
        """The results as records with these values."""
        return EncodedResults(
            self.kind, self.rules, self.rule, self.key, self.keys, self.ids, values
        )


class MatchColumns(FieldColumns):
    """The columns of matches or timeouts.

    ``step`` is a number among the ``steps`` of all rules, those of rule ``r`` begin at
    ``first_step[r]``.
    """

    def __init__(self, results: Results) -> None:
        super().__init__(
            results.kind, results.plans, results.rule, results.keys, results.key, results.names,
            results.events,
        )  # fmt: skip
        names = [[name.encode() for name in step_names(plan)] for plan in self.plans]
        self.steps = Bytes.of([name for each in names for name in each])
        self.first_step = np.cumsum([0, *map(len, names)]).astype(np.int64)
        self._by_name = np.array(
            [
                n + start
                for each, start in zip(names, self.first_step.tolist(), strict=False)
                for n in sorted(range(len(each)), key=each.__getitem__)
            ],
            np.int64,
        )
        self.ends = results.ends.astype(np.int64)
        counts = np.diff(self.ends, prepend=0)
        owner = np.repeat(self.rule, counts)
        self.step = results.step + self.first_step[owner]
        steps = np.array([len(plan.steps) for plan in self.plans], np.int64)
        #: How many of its events a row has taken, and does not only stand before.
        self.taken = np.where(results.step[self.ends - counts] < steps[self.rule], counts, 0)
        self.time, self.start = results.time, results.starts
        self.already_matched = results.already_matched.astype(np.int64)
        self.events_omitted = results.omitted
        self.measures, self.columns = results.measures, results.columns
        payload = results.events.payload
        self.payload = (
            None
            if payload is None
            else Chosen(payload, np.where(payload.nulls, -1, np.arange(len(payload))))
        )

    @property
    def annotations(self) -> NamedValues | None:
        """The annotations of their rules, filled in."""
        return annotations_of_rows(
            [plan.rule.annotations for plan in self.plans], self.rule, self._texts
        )

    def _texts(self, name: str, rows: I64) -> list[str]:
        """The texts of a field, or of a measure, in these rows."""
        match name:
            case "match_id":
                return [self.ids.text(row) or "" for row in rows.tolist()]
            case "rule_id":
                return [self.rules[rule][0] for rule in self.rule[rows].tolist()]
            case "rule_version":
                return list(map(str, self.version[rows].tolist()))
            case "key":
                keys = [self.keys.text(key) or "" for key in range(len(self.keys))]
                return ["" if key < 0 else keys[key] for key in self.key[rows].tolist()]
            case "start":
                return time_texts(self.start[rows])
            case "time":
                return time_texts(self.time[rows])
        return measured(self.measures, name, rows)

    @cached_property
    def ids(self) -> Bytes:
        """Match ids, as 32 hexadecimal digits each."""
        rows, events = len(self.row), len(self.topic)
        # A step is written once a row at most, and at most once for each event.
        room = 5 * _INTEGER * rows + 5 * _INTEGER * events + sum(
            chosen.size
            for chosen in (
                Chosen(self.rule_ids, self.rule), Chosen(self.keys, self.key),
                Chosen(self.steps, self.step), Chosen(self.topics, self.topic),
            )
        )  # fmt: skip
        out, ends = np.empty(room, np.uint8), np.zeros(rows + 1, np.int64)
        write_identities(
            self.rule, self.version, self.key, self.ends, self.step, self.topic, self.partition,
            self.offset, self.first_step, self._by_name, *self.rule_ids.pool, *self.keys.pool,
            *self.steps.pool, *self.topics.pool, out, ends,
        )  # fmt: skip
        return _ids(Bytes.of_ends(out, ends), PERSON)


class RowColumns(FieldColumns):
    """The columns of rows of ALL ROWS PER MATCH. ``match`` is the number of the id of a row's
    match among ``match_ids`` (-1: none)."""

    def __init__(self, rows: ResultRows) -> None:
        super().__init__(
            rows.kind, (rows.plan,), np.zeros(len(rows), np.int32), rows.keys, rows.key,
            rows.names, rows.events,
        )  # fmt: skip
        self.variables = texts_of(rows.plan.steps)
        self.variable = rows.variable.astype(np.int64)
        self.number, self.columns, self.match = rows.number, rows.columns, rows.match
        self.match_ids = MatchColumns(rows.matches).ids

    @cached_property
    def ids(self) -> Bytes:
        """The ids of their matches."""
        places = np.append(self.match_ids.places, 0)[self.match]
        return Bytes(places, self.match < 0, self.match_ids.data)

    @cached_property
    def row_ids(self) -> Bytes:
        """Row ids, as 32 hexadecimal digits each."""
        return row_ids(self, self.match_ids, self.match, self.number)


def row_ids(columns: FieldColumns, match_ids: Bytes, match: I64, number: I64) -> Bytes:
    """The ids of rows. ``match``: the number of each one's match among ``match_ids`` (-1: none);
    ``number``: its place among the rows of its match."""
    rows = len(columns.row)
    # Eight numbers a row, and two bytes that say whether there is a key, and a match.
    room = (8 * _INTEGER + 2) * rows + sum(
        chosen.size
        for chosen in (
            Chosen(columns.rule_ids, columns.rule), Chosen(columns.keys, columns.key),
            Chosen(match_ids, match), Chosen(columns.topics, columns.topic),
        )
    )  # fmt: skip
    out, ends = np.empty(room, np.uint8), np.zeros(rows + 1, np.int64)
    write_row_identities(
        columns.rule, columns.version, columns.key, match, number, columns.topic,
        columns.partition, columns.offset, *columns.rule_ids.pool, *columns.keys.pool,
        *match_ids.pool, *columns.topics.pool, out, ends,
    )  # fmt: skip
    return _ids(Bytes.of_ends(out, ends), ROW_PERSON)


def columns_of(results: Results | ResultRows) -> FieldColumns:
    """The columns that the fields of results are made of."""
    return MatchColumns(results) if isinstance(results, Results) else RowColumns(results)


def _ids(identities: Bytes, person: bytes) -> Bytes:
    data, places = identities.data.tobytes(), identities.places
    starts = places >> LENGTH_BITS
    ends = starts + (places & LENGTH_MASK)
    # To copy one takes half as long as to make one.
    nothing, digests = blake2b(digest_size=_ID_LENGTH // 2, person=person), list[bytes]()
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        one = nothing.copy()
        one.update(data[start:end])
        digests.append(one.digest())
    texts = np.frombuffer(b"".join(digests).hex().encode(), np.uint8)
    return Bytes.of_ends(texts, np.arange(len(places) + 1) * _ID_LENGTH)


class EncodedResults(NamedTuple):
    """Records of one topic. ``rule`` says which of ``rules`` (id, version) a record is of, ``key``
    which of ``keys`` is its key (-1: none); ``ids`` are of its match, NULL for a row that no match
    covers."""

    kind: ResultKind
    rules: list[tuple[str, int]]
    rule: I64
    key: I64
    keys: Bytes
    ids: Bytes
    values: Bytes

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
