"""Stored state with one byte changed, and its checksum right: it is read as another state, or
refused with a StateError, and nothing else happens. ``make test-bounds`` runs this with bounds
checks."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from spark_cep.columns.texts import TextSet
from spark_cep.columns.vectors import texts_of
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan, compile_rules
from spark_cep.errors import StateError
from spark_cep.matcher.batch.input_batch import InputBatch, batches_together
from spark_cep.matcher.keys import KeysState
from spark_cep.matcher.snapshot.stored_keys import StoredKeys
from spark_cep.matcher.snapshot.waiting_events import decode_batch, encode_batch
from spark_cep.matcher.snapshot.written_state import encode
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.types import BIGINT, STRING, RecordType
from tests.reference.local import LocalJob, Record
from tests.sql_rules import sql_rule

STEPS = """\
id: branching
key: key
pattern:
  - {step: a, where: "name = 'a'", times: 1+}
  - {step: b, after: followed_by_any, where: "name = 'b' AND price > LAST(a.price)"}
  - {step: c, after: followed_by, where: "name = 'c'"}
within: 40 ms
emit: {events: [price]}
---
id: absent
key: key
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: x, after: not_followed_by, where: "name = 'x'"}
within: 30 ms
cooldown: 50 ms
"""
IN_SQL = (
    "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts MEASURES COUNT(*) AS n,"
    " LAST(price) AS p, NEXT(price, 3) AS later ALL ROWS PER MATCH AFTER MATCH SKIP TO NEXT ROW"
    " PATTERN (A {- B* -} A? C) WITHIN INTERVAL '40' MILLISECONDS DEFINE A AS name IN ('a', 'b'),"
    " B AS SUM(price) < 1000, C AS price > FIRST(A.price) AND name = 'c')"
)
EVENT = RecordType({"key": STRING, "ts": BIGINT, "name": STRING, "price": BIGINT})
TYPES = RecordTypes((("t", "Event", EVENT),))


def plan_of(kind: str) -> RuleSetPlan:
    """Rules of one engine."""
    if kind == "sql":
        return compile_rules([sql_rule(IN_SQL, EVENT)], TYPES)
    return compile_rules((loaded.rule for loaded in load_rules(STEPS, "r.yaml")), TYPES)


def records(first: int, count: int) -> list[Record]:
    """Events of three keys."""
    return [
        Record(
            Coordinates("t", n % 3, n),
            n,
            {"key": f"k{n % 3}", "ts": n, "name": "aabacbbc"[n // 3 % 8], "price": n % 7},
            "t",
        )
        for n in range(first, first + count)
    ]


class Stopped:
    """A job with state and waiting events."""

    def __init__(self, kind: str) -> None:
        self.job = LocalJob(plan_of(kind), TYPES)
        self.job.advance(records(0, 40), 33)
        (self.state,) = self.job._states
        self.numbers = [4, 7]
        assert len(self.state.keys.events) > 9
        assert len(self.state.ahead) > 3
        (self.block,) = encode(self.state.keys, self.numbers)
        self.waiting = encode_batch(self.state.ahead)

    def goes_on(self, block: bytes, waiting: bytes) -> None:
        """Read, and run one batch."""
        job = LocalJob(self.job.plan, TYPES, columns=True)
        stored = StoredKeys([[block]], {number: place for place, number in enumerate(self.numbers)})
        stored.due(np.ones(1, bool))
        rows, _ = stored.find(TextSet(texts_of([f"k{number}" for number in range(3)])))
        state = job._states[0]
        state.names = deepcopy(self.state.names)
        state.keys = replace(stored.chosen(rows)) if len(rows) else KeysState()
        state.ahead = decode_batch(waiting)
        job.watermark = 33
        job.advance(records(40, 12), 48)
        encode(state.keys, self.numbers)
        job.outputs.as_objects()
        list(job.partial_matches())


def changed(data: bytes, random: Random) -> list[bytes]:
    """The bytes with one changed, each in turn."""
    found = []
    for place in range(len(data)):
        other = random.choice([0, 1, 0x7F, 0x80, 0xFF, data[place] ^ 1 << random.randrange(8)])
        if other != data[place]:
            found.append(data[:place] + bytes([other]) + data[place + 1 :])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["steps", "sql"])
def test_one_changed_byte(kind: str) -> None:
    """Of the state, and of the events that wait."""
    stopped, random = Stopped(kind), Random(1)
    stopped.goes_on(stopped.block, stopped.waiting)
    ended: Counter[str] = Counter()
    for block, waiting in (
        *((block, stopped.waiting) for block in changed(stopped.block, random)),
        *((stopped.block, waiting) for waiting in changed(stopped.waiting, random)),
    ):
        try:
            stopped.goes_on(block, waiting)
            ended["read"] += 1
        except StateError as error:
            assert "restore the checkpoint" in str(error)
            ended["refused"] += 1
    assert ended["refused"] > 100
    assert ended["read"] > 30


def test_many_rows_without_bytes() -> None:
    """A small block that says that it has very many rows is refused before there is room made."""
    stopped = Stopped("steps")
    block = bytearray(stopped.block)
    for table in range(8):
        many = bytearray(block)
        many[3 + 4 * table : 7 + 4 * table] = (1 << 28).to_bytes(4, "little")
        with pytest.raises(StateError, match="damaged"):
            StoredKeys([[bytes(many)]], {})
    assert len(batches_together([stopped.state.ahead, InputBatch()]).events) > 0
