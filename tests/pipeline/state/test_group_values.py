"""The value of a key group with one byte changed, and its checksum right: it is read as another
value, or refused with a StateError, and nothing else happens."""

from __future__ import annotations

import zlib
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from spark_cep.compiler.plan import Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import DrainTime, compile_rule, plan_together
from spark_cep.errors import StateError
from spark_cep.model import Coordinates
from spark_cep.packing import pack, sealed, unpack, unsealed
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.types import BIGINT, STRING, RecordType
from spark_cep.pipeline.state.entries import check_entry
from spark_cep.pipeline.state.group_format import GROUP
from spark_cep.pipeline.state.group_values import check_values
from spark_cep.runner.batch import Batch, RunSettings
from spark_cep.runner.runner import Runner
from spark_cep.runner.values import ValueInputs, ValueRecord, records_of
from tests.sql_rules import sql_rule

RULE = """\
id: {0}
key: key
version: {1}
pattern:
  - {{step: a, where: "name = 'a'"}}
  - {{step: b, after: followed_by, where: "price + {1} > LAST(a.price)"}}
within: 40 ms
"""
IN_SQL = (
    "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts MEASURES LAST(A.price) AS p"
    " PATTERN (A B) WITHIN INTERVAL '40' MILLISECONDS DEFINE A AS name = 'a', B AS name = 'b')"
)
EVENT = RecordType({"key": STRING, "ts": BIGINT, "name": STRING, "price": BIGINT})
TYPES = RecordTypes((("t", "Event", EVENT),))


def planned(rule: str, version: int) -> Plan:
    """One version of a rule."""
    (loaded,) = load_rules(RULE.format(rule, version), "r.yaml")
    made = compile_rule(loaded.rule, TYPES)
    assert isinstance(made, Plan)
    return made


class Stopped:
    """A run whose one key group has partial matches, events that wait, a version that drains and
    one that is carried over."""

    def __init__(self) -> None:
        in_sql = compile_rule(sql_rule(IN_SQL, EVENT), TYPES)
        old = [planned("moves", 1), planned("drains", 1)]
        new = [planned("moves", 2), planned("drains", 2)]
        inputs = ValueInputs(TYPES)
        self._input = inputs.number("t", "Event")
        settings = RunSettings(late_events="all", key_groups=1)
        self.runner = Runner(plan_together([*old, in_sql]), inputs, settings)
        self._apply(0, 30, watermark=25)
        now = plan_together([*new, in_sql], [(old[1], DrainTime(1_000))], [old[0]])
        self.runner.use(now, inputs)
        self._apply(30, 0, watermark=25)
        self._state, self._watermark = self.runner.snapshot(), self.runner.watermark
        (entries,) = self._state.groups
        self.value = unsealed(entries.by_name[GROUP])
        held = unpack(self.value)
        assert all(held[name] for name in ("drains", "carried", "stale", "waiting", "entries"))

    def _apply(self, first: int, count: int, watermark: int) -> None:
        values = [
            ValueRecord.of(
                Coordinates("t", 0, n),
                self._input,
                n * 1_000,
                {"key": f"k{n % 4}", "ts": n, "name": "aabc"[n // 4 % 4], "price": n % 5},
            )
            for n in range(first, first + count)
        ]
        self.runner.apply(Batch(records_of(values), watermark=watermark))

    def goes_on(self, value: bytes) -> None:
        """Read the value, and run two batches with it."""
        state = self._state.copy()
        state.groups[0].by_name[GROUP] = sealed(value)
        self.runner._state, self.runner.watermark = state, self._watermark
        self._apply(30, 6, watermark=30)
        self._apply(36, 4, watermark=60)
        list(self.runner.partial_matches())


@pytest.fixture(scope="module")
def stopped() -> Stopped:
    """A run with state."""
    return Stopped()


@pytest.mark.slow
def test_one_changed_byte(stopped: Stopped) -> None:
    """Of the clock, the known rules, the entries with their sizes, and all else."""
    random, ended = Random(3), Counter[str]()
    stopped.goes_on(stopped.value)
    for place, byte in enumerate(stopped.value):
        other = random.choice([0, 1, 0x7F, 0x80, 0xC0, 0xCF, 0xFF, byte ^ 1 << random.randrange(8)])
        if other == byte:
            continue
        try:
            stopped.goes_on(stopped.value[:place] + bytes([other]) + stopped.value[place + 1 :])
            ended["read"] += 1
        except StateError:
            ended["refused"] += 1
    assert ended["refused"] > 300
    assert ended["read"] > 30


WRONG: list[tuple[str, Any]] = [
    ("clock", [1 << 63, [], 0]),
    ("clock", [0, [["t", 0, "now"]], 0]),
    ("buckets", {"0": 0}),
    ("buckets", {"0": 1 << 40}),
    ("next_rule", 0),
    ("entries", {"0/0": [0, 1 << 40, 0]}),
    ("entries", {"0/0": [0, -1, 0]}),
    ("entries", {"0/0": [0, 1.5, 0]}),
    ("entries", {"0/0": [0, 1]}),
    ("entries", None),
    ("types", [1]),
    ("waiting", {b"0/w0": 1}),
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=lambda each: str(each)[:30])
def test_values_that_none_writes(stopped: Stopped, name: str, value: Any) -> None:
    """Each is refused before it is used."""
    held = unpack(stopped.value)
    check_values(held)
    with pytest.raises(StateError, match="restore the checkpoint"):
        stopped.goes_on(pack(held | {name: value}))


def test_a_layout_whose_fingerprint_is_another(stopped: Stopped) -> None:
    """Bits and columns would mean something else."""
    held = unpack(stopped.value)
    fingerprint, (conditions, *rest) = next(iter(held["meanings"].items()))
    held["meanings"][fingerprint] = [[*conditions, "x"], *rest]
    with pytest.raises(StateError, match="what its fingerprint says"):
        check_values(held)


@pytest.mark.parametrize("size", [0, 15, 16 * 255 * 10, 1 << 31])
def test_a_size_that_the_bytes_do_not_have(size: int) -> None:
    """LZ4 is given no other room than there may be bytes."""
    stored = pa.Codec("lz4_raw").compress(b"a" * 16, asbytes=True)
    with pytest.raises(StateError, match="has not"):
        check_entry(0, "0/0", stored, size, zlib.crc32(stored))
    assert check_entry(0, "0/0", stored, 16, zlib.crc32(stored)) == b"a" * 16
