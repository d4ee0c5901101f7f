"""Matches and timeouts that are columns, to records: all of them in a few compiled passes.

The bytes are those of :class:`service.codecs.outputs.OutputEncoder` and ids those of
:func:`service.match_ids.match_id`, which say what each part means and are what this is tested
against. Texts are laid out once in a pool, in the form that each of the two wants; the compiled
loops put them and the numbers together.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.codecs.result_bytes import ID_LENGTH, put_long, write_identities, write_values
from service.match_ids import PERSON
from service.matcher.columnar.compilation import I64
from service.matcher.columnar.results import ResultKind, Results

#: Of a number in Avro, and of all numbers and marks of one row, one step, one event.
_MOST_LONG = 10
_MOST_OF_ROW, _MOST_OF_STEP, _MOST_OF_EVENT = 80, 16, 40
_INTEGER = Struct(">q").pack

_Bytes = NDArray[np.uint8]


class _Pool(NamedTuple):
    """Texts one behind the other; text ``i`` is ``data[ends[i]:ends[i + 1]]``."""

    data: _Bytes
    ends: I64

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> _Pool:
        ends = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=ends[1:])
        return cls(np.frombuffer(b"".join(texts), np.uint8), ends)

    def lengths(self, places: Any) -> I64:
        """Of the texts at these places."""
        lengths: I64 = np.diff(self.ends)[places]
        return lengths


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
    """Records of one topic, a list for each part. ``rule`` says which of ``rules`` (id, version)
    a record is of."""

    kind: ResultKind
    rules: list[tuple[str, int]]
    rule: list[int]
    keys: list[bytes | None]
    ids: list[bytes]
    values: list[bytes]

    def split(self, apart: Container[tuple[str, int]]) -> tuple[EncodedResults, EncodedResults]:
        """The records of other rules, and those of the rules ``apart``."""
        are = [rule in apart for rule in self.rules]
        rows: tuple[list[int], list[int]] = ([], [])
        for row, rule in enumerate(self.rule):
            rows[are[rule]].append(row)
        return self.take(rows[0]), self.take(rows[1])

    def take(self, rows: Sequence[int]) -> EncodedResults:
        """These of the records."""
        return self._replace(
            rule=[self.rule[row] for row in rows],
            keys=[self.keys[row] for row in rows],
            ids=[self.ids[row] for row in rows],
            values=[self.values[row] for row in rows],
        )


def encode_results(results: Results, schema_id: int, emitted_at: int) -> EncodedResults:
    """All rows as records with the framing of ``schema_id``. ``emitted_at``: processing time in
    milliseconds."""
    used, rule = np.unique(results.rule, return_inverse=True)
    plans = [results.plans[number] for number in used.tolist()]
    used_keys, key = np.unique(results.key, return_inverse=True)
    keys = [
        None if text is None else text.encode()
        for text in (results.keys[number] for number in used_keys.tolist())
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
        _Pool.of([_text(name.encode()) + _long(version) for name, version in rules]),
        _Pool.of([_optional(text) for text in keys]),
        _Pool.of([_text(name) for name in steps]),
        _Pool.of([_text(name) for name in topics]),
        _Pool.of([_optional(name) for name in types]),
    )
    rule_pool, key_pool, step_pool, topic_pool, type_pool = pools
    room = _room(rows, pools)
    out, ends = np.empty(room, np.uint8), np.zeros(len(results) + 1, np.int64)
    write_values(
        *rows, results.starts, np.ascontiguousarray(results.time, np.int64),
        np.ascontiguousarray(results.already_matched, np.uint8),
        results.kind is ResultKind.TIMEOUT, emitted_at, schema_id,
        np.frombuffer(b"".join(ids), np.uint8),
        *rule_pool, *key_pool, *step_pool, *topic_pool, *type_pool, out, ends,
    )  # fmt: skip
    key_numbers = key.tolist()
    return EncodedResults(
        results.kind, rules, rule.tolist(), [keys[n] for n in key_numbers], ids, _cut(out, ends)
    )


def _ids(
    rows: _Rows,
    rules: Iterable[tuple[str, int]],
    keys: Iterable[bytes | None],
    steps: Iterable[bytes],
    topics: Iterable[bytes],
) -> list[bytes]:
    """Match ids, as 32 hexadecimal digits each."""
    pools = (
        _Pool.of([_counted(name.encode()) + _INTEGER(version) for name, version in rules]),
        _Pool.of([b"\x00" if text is None else b"\x01" + _counted(text) for text in keys]),
        _Pool.of([_counted(name) for name in steps]),
        _Pool.of([_counted(name) for name in topics]),
    )
    rule_pool, key_pool, step_pool, topic_pool = pools
    out, ends = np.empty(_room(rows, pools), np.uint8), np.zeros(len(rows.rule) + 1, np.int64)
    write_identities(*rows, *rule_pool, *key_pool, *step_pool, *topic_pool, out, ends)
    return [
        blake2b(identity, digest_size=ID_LENGTH // 2, person=PERSON).hexdigest().encode()
        for identity in _cut(out, ends)
    ]


def _room(rows: _Rows, pools: Sequence[_Pool]) -> int:
    """Bytes that are enough for all rows."""
    rule_pool, key_pool, step_pool, topic_pool, *others = pools
    room = len(rows.rule) * (_MOST_OF_ROW + ID_LENGTH)
    room += int(rule_pool.lengths(rows.rule).sum() + key_pool.lengths(rows.key).sum())
    # A step is written once a row at most, and at most once for each event.
    room += int(step_pool.lengths(rows.step).sum()) + len(rows.step) * _MOST_OF_STEP
    room += int(topic_pool.lengths(rows.topic).sum()) + len(rows.step) * _MOST_OF_EVENT
    for type_pool in others:
        room += int(type_pool.lengths(rows.type).sum())
    return room


def _cut(out: _Bytes, ends: I64) -> list[bytes]:
    written = out[: ends[-1]].tobytes()
    return [written[start:end] for start, end in pairwise(ends.tolist())]


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
