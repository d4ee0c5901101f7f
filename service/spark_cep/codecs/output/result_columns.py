"""Matches and timeouts that are columns: their ids, and the columns that their fields are made of.

Ids are those of :func:`spark_cep.match_ids.match_id`, which says what each part means and is what
this is tested against.
"""

from __future__ import annotations

from collections.abc import Container
from functools import cached_property
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from spark_cep.codecs.output.loops.result_bytes import write_identities
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes, texts_of
from spark_cep.match_ids import PERSON
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


class FieldColumns:
    """The columns that the fields of ``results`` are made of: numbers, and texts in UTF-8 by
    number.

    ``rules``: id and version of each rule, ``rule`` the number of a row's. The events of row ``i``
    are those from ``ends[i - 1]`` to ``ends[i]``; ``topic``, ``partition`` and what follows are of
    events. ``step`` is a number among the ``steps`` of all rules, those of rule ``r`` begin at
    ``first_step[r]``.
    """

    def __init__(self, results: Results) -> None:
        used, self.rule = np.unique(results.rule, return_inverse=True)
        plans = [results.plans[number] for number in used.tolist()]
        self.kind, self._results = results.kind, results
        self.rules = [(plan.rule.id, plan.rule.version) for plan in plans]
        self.rule_ids = texts_of([name for name, _ in self.rules])
        self.versions = np.array([version for _, version in self.rules], np.int64)
        self.version = self.versions[self.rule]
        used_keys, key = np.unique(results.key, return_inverse=True)
        keys = results.keys.take(used_keys)
        self.keys = keys
        self.key = np.where(keys.nulls, -1, np.arange(len(keys)))[key]
        names = [[name.encode() for name in step_names(plan)] for plan in plans]
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
        steps = np.array([len(plan.steps) for plan in plans], np.int64)
        #: How many of its events a row has taken, and does not only stand before.
        self.taken = np.where(results.step[self.ends - counts] < steps[self.rule], counts, 0)
        self.topics = texts_of(results.names.topics)
        self.types, types = Bytes.numbered(
            None if name is None else name.encode() for name in results.names.types
        )
        events = results.events
        self.topic, self.type = events.topic.astype(np.int64), types[events.type]
        self.partition = events.partition.astype(np.int64)
        self.offset, self.event_time = events.offset, events.time
        self.time, self.start = results.time, results.starts
        self.already_matched = results.already_matched.astype(np.int64)
        self.row = np.arange(len(results))
        self.measures, self.columns = results.measures, results.columns
        payload = events.payload
        self.payload = (
            None
            if payload is None
            else Chosen(payload, np.where(payload.nulls, -1, np.arange(len(payload))))
        )

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
        return texts_of(
            [
                blake2b(identity or b"", digest_size=_ID_LENGTH // 2, person=PERSON).hexdigest()
                for identity in Bytes.of_ends(out, ends).values()
            ]
        )

    def encoded(self, values: Bytes) -> EncodedResults:
        """The results as records with these values."""
        return EncodedResults(
            self.kind, self.rules, self.rule, self.key, self.keys, self.ids, values
        )


class EncodedResults(NamedTuple):
    """Records of one topic. ``rule`` says which of ``rules`` (id, version) a record is of, ``key``
    which of ``keys`` is its key (-1: none)."""

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
