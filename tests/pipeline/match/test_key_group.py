"""A key group without Spark: what a batch finds, reads, writes and counts.

State is a dict of bytes, each batch a new :class:`KeyGroup` that takes over what the one before has
stored, and events come as the packets that the decoding tasks make.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from spark_cep.columns.representation import Representation, representation, to_whole
from spark_cep.columns.vectors import texts_of
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning, RuleSetPlan, compile_rules, plan_together
from spark_cep.errors import StateError
from spark_cep.matcher.batch.events import SlotType
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.keys import KeysMatcher
from spark_cep.model import Coordinates, LateEvent
from spark_cep.packing import pack, sealed, unpack
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.tree import Contiguity, Rule, Step, Times, Within
from spark_cep.pattern.types import BIGINT, STRING, RecordType
from spark_cep.pipeline.match.batch_input import BatchInput
from spark_cep.pipeline.match.key_group import KeyGroup
from spark_cep.pipeline.match.options import MatchOptions
from spark_cep.pipeline.match.partitioning_batch import MOST_MEANINGS, PartitioningBatch
from spark_cep.pipeline.match.spool import SLICE
from spark_cep.pipeline.state.buckets import buckets_of, hashes_of
from spark_cep.pipeline.state.entries import CHANGES, base_name
from spark_cep.pipeline.state.stored_group import StoredGroup
from spark_cep.pipeline.wire.event_packets import (
    MICROS_COLUMN,
    TOPIC,
    TYPE_COLUMN,
    WORD_BITS,
    PackedPartitioning,
    conditions_column,
    packet_of,
    words_of,
)
from spark_cep.pipeline.wire.masks import condition_sets
from spark_cep.pipeline.wire.packet_schemas import PacketKind
from spark_cep.pipeline.wire.packets import Unkeyed, UnkeyedEvents
from tests.matcher.runs import END_OF_TIME, TYPES, written
from tests.matcher.strategies import condition, rules, streams
from tests.reference.local import EventReader, LocalJob, Record
from tests.sql_rules import sql_rule

#: So small that buckets are split.
BUCKET_SIZE = 600
TYPE_NAMES = ("Event", "Other")
#: Arrow's types of columns, as the decoder writes them.
ARROW = {
    Representation.WHOLE: pa.int64(),
    Representation.DOUBLE: pa.float64(),
    Representation.TEXT: pa.string(),
    Representation.OBJECT: pa.binary(),
}

property_of = settings(
    max_examples=60,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


class Store:
    """The state of one key group over many batches, and what each batch touched of it."""

    def __init__(
        self,
        plan: RuleSetPlan,
        types: RecordTypes = TYPES,
        bucket_size: int = BUCKET_SIZE,
        slice_bytes: int = SLICE,
        disorder: int = 0,
    ) -> None:
        self.entries: dict[str, bytes] = {}
        self.group: bytes | None = None
        self.outputs = Outputs()
        self.late: list[LateEvent] = []
        self.live: dict[str, int] = {}
        self.live_versions: dict[tuple[str, int], int] = {}
        #: Fingerprints of versions that have drained.
        self.drained: list[str] = []
        self.newest = self.watermark = -10
        self.gone: list[tuple[str, int, int]] = []
        self.loaded: Counter[str] = Counter()
        self.stored: Counter[str] = Counter()
        self.bucket_size = bucket_size
        self.slice_bytes = slice_bytes
        self.disorder = disorder
        self.ended: Counter[tuple[str, int]] = Counter()
        self.change(plan, types)

    def change(self, plan: RuleSetPlan, types: RecordTypes = TYPES) -> None:
        """Go on with another rule set, or with other types."""
        self.plan, self.types = plan, types
        self._readers = [EventReader(part, types) for part in plan.partitionings]
        self._matchers = [KeysMatcher(part, types) for part in plan.partitionings]

    def advance(
        self, records: Iterable[Record], watermark: int, reset_to: int | None = None
    ) -> None:
        """One batch, as ``LocalJob.advance``; ``reset_to``: before it the clock is set back."""
        options = MatchOptions(
            1, self.bucket_size, "partition_minimum", self.disorder, True, TYPE_NAMES, self.types,
            self.slice_bytes,
        )  # fmt: skip
        stored = None if self.group is None else unpack(self.group)
        group = KeyGroup(0, self.plan, options, self._matchers, stored=stored)
        records = list(records)
        slowest = watermark + self.disorder + 1
        if reset_to is not None:
            group.set_back(reset_to)
            self.newest = min(self.newest, reset_to + self.disorder + 1)
        self.newest = max(self.newest, slowest, *(record.time for record in records))
        # One partition holds the watermark back, another one is ahead.
        group.clock.read([("t", 0, slowest), ("t", 1, self.newest)])
        self.loaded.clear()
        self.stored.clear()
        batch = self.batch(records)
        run = group.run(batch, self._load, self._store)
        for outputs in run:
            self.outputs.add(outputs.as_objects())
        self.group, self.watermark = pack(group.packed()), watermark
        self.late += group.late_events()
        self.live = {rule: number for (rule, _), number in group.live().items()}
        self.live_versions, self.gone, self.ended = group.live(), group.gone, group.ended
        self.drained = group.drained()

    def _load(self, names: Sequence[str]) -> list[bytes | None]:
        self.loaded.update(names)
        return [self.entries.get(name) for name in names]

    def _store(self, name: str, value: bytes | None) -> None:
        self.stored[name] += 1
        if value is None:
            del self.entries[name]  # there is nothing to remove twice
        else:
            self.entries[name] = value

    def held(self) -> dict[str, int]:
        """Partial matches by rule, read from what is stored alone."""
        assert self.group is not None
        group = StoredGroup(sealed(self.group))
        rules = {rule.fingerprint: rule.id for rule in group.rules}
        held = Counter(dict.fromkeys(rules.values(), 0))
        for name, base in self.entries.items():
            if not name.endswith(CHANGES):
                changes = self.entries.get(name + CHANGES)
                of_bucket = group.bucket(
                    group.check(0, name, base),
                    None if changes is None else group.check(0, name + CHANGES, changes),
                )
                for fingerprint, of_rule in of_bucket.rules.items():
                    held[rules[fingerprint]] += of_rule.partial_matches
        return dict(held)

    def unkeyed(self, records: list[Record]) -> list[Unkeyed]:
        """The events that lack the key of some rule."""
        return [
            Unkeyed(*record.at, record.time, b"key", b"value", None, "a key is null")
            for record in records
            if any(map(_missing_key(record), self.plan.partitionings, self._readers))
        ]

    def batch(self, records: list[Record]) -> BatchInput:
        """The events that rules want, by partitioning; an uneven cut in two each."""
        batch, unkeyed = BatchInput(), self.unkeyed(records)
        if unkeyed:
            batch.take(PacketKind.UNKEYED, UnkeyedEvents(tuple(unkeyed)).encode())
        seen = {Coordinates(*event[:3]) for event in unkeyed}
        for number, (part, reader) in enumerate(
            zip(self.plan.partitionings, self._readers, strict=True)
        ):
            rows: list[dict[str, Any]] = []
            for record in records:
                if not part.reads(record.input):
                    continue
                if reader.missing_key(record) and not part.takes_null(record.input):
                    continue
                event = reader.event(record, Outputs())
                if not _is_wanted(part, event.bits):
                    continue
                value = json.dumps(record.values).encode()
                shape = PackedPartitioning.of(number, part, micros=True)
                header = {"key": "h", "value": b64encode(b"\x00x").decode()}
                fields = [
                    reader.key(record), event.time, event.micros, *event.at,
                    TYPE_NAMES.index(record.type or "Event"), b"key", value,
                    json.dumps([header, {"key": "none"}]), record.at not in seen,
                    _set_of(event.bits, len(part.conditions)),
                    *written_columns(event.columns, self._matchers[number].slots),
                ]  # fmt: skip
                rows.append(dict(zip(shape.columns, fields, strict=True)))
                seen.add(record.at)
            for cut in (rows[::3], [row for n, row in enumerate(rows) if n % 3]):
                if cut:
                    batch.take(PacketKind.EVENTS + number, packet_of(self._batch(number, cut)))
        return batch

    def _batch(self, number: int, rows: list[dict[str, Any]]) -> pa.RecordBatch:
        part = self.plan.partitionings[number]
        shape = PackedPartitioning.of(number, part, micros=True)
        kinds: dict[str, pa.DataType] = {
            f"key_{number}": pa.string(), "time": pa.int64(), MICROS_COLUMN: pa.int16(),
            "topic": TOPIC, "partition": pa.int32(), "offset": pa.int64(),
            TYPE_COLUMN: pa.int32(), "record_key": pa.binary(), "value": pa.binary(),
            "headers": pa.string(), "first": pa.bool_(),
        }  # fmt: skip
        kinds[conditions_column(number)] = condition_sets(_words(0, len(part.conditions))).type
        slots = self._matchers[number].slots
        kinds |= {f"slot_{number}_{n}": arrow_type(slot) for n, slot in enumerate(slots)}
        assert list(kinds) == shape.columns
        return pa.RecordBatch.from_pylist(rows, schema=pa.schema(list(kinds.items())))

    @property
    def found(self) -> Any:
        """Everything found, whatever the order."""
        return findings(self.outputs)


def _is_wanted(part: Partitioning, bits: int) -> bool:
    """Whether an event can concern some rule, of steps or in SQL."""
    return any(True for _ in part.touched(bits)) or any(
        part.own_bits(number, bits) is not None for number, _, _ in part.row_pattern_rules
    )


def _words(mask: int, conditions: int) -> NDArray[np.int64]:
    rows = [[mask >> WORD_BITS * n & (1 << WORD_BITS) - 1 for n in range(words_of(conditions))]]
    return np.array(rows, np.int64)


def _set_of(mask: int, conditions: int) -> Any:
    return condition_sets(_words(mask, conditions))[0].as_py()


def arrow_type(slot: SlotType) -> pa.DataType:
    """Arrow's type of a column in packets."""
    return ARROW[representation(slot.kind)]


def written_columns(columns: Sequence[Any], slots: Sequence[SlotType]) -> list[Any]:
    """The values of an event as the decoder writes them."""
    return [
        value if value is None else _written(value, slot)
        for value, slot in zip(columns, slots, strict=True)
    ]


def _written(value: Any, slot: SlotType) -> Any:
    match representation(slot.kind):
        case Representation.OBJECT:
            return pack(value)
        case Representation.WHOLE:
            assert slot.kind is not None
            return to_whole(slot.kind)(value)
    return value


def _missing_key(record: Record) -> Callable[[Partitioning, EventReader], bool]:
    return lambda part, reader: part.reads(record.input) and reader.missing_key(record) is not None


def findings(outputs: Outputs, rule_id: str | None = None) -> Any:
    """What was found, of one rule or of all, whatever the order."""
    return (
        sorted(
            (m.rule_id, m.match_id, m.time, repr(m.steps), repr(m.measures))
            for m in outputs.matches
            if rule_id in (None, m.rule_id)
        ),
        sorted(
            (t.rule_id, t.match_id, t.deadline, t.already_matched)
            for t in outputs.timeouts
            if rule_id in (None, t.rule_id)
        ),
        {what: n for what, n in outputs.counts.items() if rule_id in (None, what[0])},
    )


def live_of(job: LocalJob) -> dict[str, int]:
    """How many partial matches of each rule there are."""
    live = {plan.rule.id: 0 for plan in job.plan.plans}
    for _, plan, state in job.rule_states():
        live[plan.rule.id] += len(state.partials)
    return live


# Equal to the job in one process.

#: A rule with a condition that calls Python.
LEFT = Rule(
    "left",
    1,
    (
        Step("p", None, condition("name = 'a'"), times=Times(1, 2)),
        Step("q", Contiguity.FOLLOWED_BY, condition("LAST(p.price + 0) < price")),
    ),
    key=(condition("key"),),
)


@st.composite
def rule_sets(draw: st.DrawFn) -> list[Rule]:
    """Rules of several keys, with compiled and called conditions, some with measures and
    payload."""
    key, name = condition("key"), condition("name")
    made = [draw(rules("r")), LEFT]
    made.append(replace(draw(rules("pair")), key=(key, name)))
    made.append(replace(draw(rules("global")), key=()))
    made.append(replace(LEFT, id="left global", key=()))
    if draw(st.booleans()):
        emit = replace(LEFT.emit, events="all")
        made.append(replace(draw(rules("payload")), emit=emit, cooldown_ms=3))
    return draw(st.permutations(made))


@st.composite
def batches(
    draw: st.DrawFn, keys: Sequence[str | None] = "klmn", *, name: bool = False
) -> list[tuple[list[Record], int]]:
    """Events of several keys, in some disorder, with the watermark after each batch; some late.
    ``name``: some have none."""
    no_name = {"name": None} if name else {}
    events = [(key, one) for key in keys for one in draw(streams(5))]
    order = draw(st.permutations(range(len(events))))
    records = [
        Record(
            Coordinates(draw(st.sampled_from("tsz")), number % 2, number),
            events[place][1].time,
            {
                **events[place][1].values,
                **(no_name if number % 3 == 1 else {}),
                "key": events[place][0],
            },
            type="Event",
        )
        for number, place in enumerate(sorted(order, key=lambda n: events[n][1].time + n % 4))
    ]
    cuts = sorted(draw(st.lists(st.integers(0, len(records)), max_size=4)))
    made, watermark = [], -10
    for start, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
        cut = records[start:end]
        newest = max((record.time for record in cut), default=watermark)
        watermark = max(watermark, newest - draw(st.integers(0, 4)))
        made.append((cut, watermark))
    return [*made, ([], END_OF_TIME)]


@pytest.mark.slow
@property_of
@given(rule_sets(), batches(), st.sampled_from([1, 1_500, SLICE]))
def test_equal_to_the_local_job(
    rule_set: list[Rule], stream: list[tuple[list[Record], int]], slice_bytes: int
) -> None:
    """Findings after every batch, and the live partial matches, whatever is cut how, and in
    however many slices of time a batch is taken up."""
    plan = compile_rules(rule_set)
    store, job = Store(plan, slice_bytes=slice_bytes), LocalJob(plan, TYPES)
    for records, watermark in stream:
        # Payload is what Spark read; the local job has none.
        store.advance(records, watermark)
        job.advance(records, watermark)
        assert without_payload(store.found) == without_payload(findings(job.outputs))
        assert store.live == store.held() == live_of(job)
        assert {late.at for late in store.late} <= {late.at for late in job.late}
    # What is left in the end, where no rule has an end of its own, is what is remembered.
    assert bool(store.entries) == any(True for _ in job.rule_states())


@pytest.mark.parametrize(
    ("alone", "counts", "charged"),
    [
        # The work of rules of steps is what they count; another one's own time is known.
        ({}, {("a", "tested"): 3, ("b", "matched"): 1}, {"a": 75, "b": 25}),
        ({"q": 40}, {("a", "tested"): 2, ("b", "tested"): 1}, {"q": 40, "a": 40, "b": 20}),
        ({"q": 40}, {("a", "tested"): 1, ("q", "matched"): 9}, {"q": 40, "a": 60}),
        # What all of them share is theirs.
        ({"q": 40, "r": 10}, {("q", "matched"): 2}, {"q": 80, "r": 20}),
        ({}, {}, {}),
    ],
)
def test_time_is_charged_to_rules(
    alone: dict[str, int], counts: dict[tuple[str, str], int], charged: dict[str, int]
) -> None:
    """All of it, to those that took it."""
    batch: Any = SimpleNamespace(spent=Counter())
    PartitioningBatch._share_out(batch, 100, Counter(alone), Counter(counts))
    assert batch.spent == charged


TYPES_OF_T = RecordTypes((("t", *TYPES.known[0][1:]),))
#: Rules of both kinds, by id; those of steps share their keys with those in SQL.
BOTH_KINDS = compile_rules(
    [
        *(
            Rule(
                f"steps {n}",
                1,
                (
                    Step("p", None, condition("name = 'a'")),
                    Step("q", after, condition("price >= LAST(p.price)")),
                ),
                events=("t",),
                key=key,
                within=Within(9),
            )
            for n, (key, after) in enumerate(
                [
                    ((condition("key"),), Contiguity.FOLLOWED_BY),
                    ((condition("key"), condition("name")), Contiguity.NEXT),
                ]
            )
        ),
        *(
            sql_rule(
                f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY {key} ORDER BY price "
                f"MEASURES COUNT(*) AS n {pattern} DEFINE B AS price > PREV(price))",
                rule_id=f"sql {n}",
            )
            for n, (key, pattern) in enumerate(
                [
                    ("key", "PATTERN (A+ B)"),
                    ("key, name", "PATTERN (A B) WITHIN INTERVAL '9' MILLISECONDS"),
                    ("name", "PATTERN (A B*)"),
                ]
            )
        ),
    ],
    TYPES_OF_T,
).plans


@pytest.mark.slow
@property_of
@given(
    st.lists(st.sets(st.integers(0, len(BOTH_KINDS) - 1), min_size=1), min_size=1, max_size=3),
    batches(["k", "", "null", None], name=True),
)
def test_null_among_keys(chosen: list[set[int]], stream: list[tuple[list[Record], int]]) -> None:
    """NULL is a key to rules in SQL beside all others, over batches, buckets and changes of other
    rules; to rules of steps it is none. Each event that lacks a key that they need is one dead
    letter, or late, and once."""
    sets = [plan_together(BOTH_KINDS[n] for n in sorted(each)) for each in chosen]
    stay = [BOTH_KINDS[n] for n in sorted(set.intersection(*chosen))]
    store = Store(sets[0], TYPES_OF_T, bucket_size=200)
    jobs = [LocalJob(plan_together([plan]), TYPES_OF_T) for plan in stay]
    for number, (records, watermark) in enumerate(stream):
        records = [replace(record, input="t") for record in records]  # noqa: PLW2901
        store.change(sets[min(number, len(sets) - 1)], TYPES_OF_T)
        store.advance(records, watermark)
        for job in jobs:
            job.advance(records, watermark)
    for plan, job in zip(stay, jobs, strict=True):
        rule_id = plan.rule.id
        assert findings(store.outputs, rule_id) == findings(job.outputs)
    letters = Counter(each.at for each in store.outputs.dead_letters)
    assert {each.at for job in jobs for each in job.outputs.dead_letters} <= letters.keys()
    assert set((letters + Counter(each.at for each in store.late)).values()) <= {1}


def without_payload(found: Any) -> Any:
    """Findings, without the text of the events taken."""
    matches, timeouts, counts = found
    return [match[:3] for match in matches], timeouts, counts


# What is touched.

PAIR = """
id: {0}
key: {1}
within: 100 ms
pattern:
  - {{step: a, where: "name = 'a'"}}
  - {{step: b, after: followed_by, where: "name = 'b' AND {2}"}}
"""
OTHER_TYPES = RecordTypes(
    (("", "Event", RecordType({"key": STRING, "name": STRING, "price": BIGINT})),)
)
FAST, SLOW = "price > LAST(a.price)", "LAST(a.price + 0) < price"


MEASURE = """
id: {0}
key: key
pattern: [{{step: a, where: name = 'never'}}]
emit: {{measures: {{found: LAST(a.{1})}}}}
"""


def plan_of(*texts: str) -> RuleSetPlan:
    """The rules of these texts."""
    return compile_rules(one.rule for one in load_rules("---".join(texts).lstrip(), "rules"))


def bucket_name(store: Store, key: str, of: str = "key") -> str:
    """The bucket that a key is in."""
    assert store.group is not None
    prefix = f"{zlib.crc32(of.encode()):08x}"
    count = unpack(store.group)["buckets"][prefix]
    return base_name(prefix, int(buckets_of(hashes_of(texts_of([key])), count)[0]))


def several(events: str, keys: Sequence[str]) -> list[Record]:
    """The events for each of the keys, at places of their own."""
    return [
        replace(record, at=Coordinates("t", number, record.at.offset), type="Event")
        for number, key in enumerate(keys)
        for record in written(events, key)
    ]


@pytest.mark.parametrize("looks", [FAST, SLOW], ids=["compiled", "called"])
def test_only_what_is_touched(looks: str) -> None:
    """A batch reads, once each, the buckets of its events and of due deadlines, and writes what has
    changed of them."""
    store = Store(plan_of(PAIR.format("r", "key", looks)), bucket_size=4_000)
    keys = [f"key {number}" for number in range(2_000)]
    store.advance(several("a=1@1", keys), 1)
    store.advance([], 2)  # one bucket is too large
    count = len(store.entries)
    assert count > 4
    assert sum(store.stored.values()) == count
    store.advance([], 50)
    assert not store.loaded
    assert not store.stored
    base = bucket_name(store, "key 0")
    changes = base + CHANGES
    store.advance(several("b=0@51", ["key 0"]), 51)  # touched, and not taken
    assert (store.loaded, store.stored) == ({base: 1}, {changes: 1})
    assert len(store.entries[changes]) * 4 < len(store.entries[base])
    store.advance(several("b=5@52", ["key 0"]), 52)  # a match: nothing is remembered of the key
    assert (store.loaded, store.stored) == ({base: 1, changes: 1}, {changes: 1})
    store.advance(several("b=5@53", ["other"]), 53)
    assert set(store.loaded) <= {(other := bucket_name(store, "other")), other + CHANGES}
    assert not store.stored  # nothing was there, and nothing is now
    assert len(store.entries) == count + 1
    store.advance([], 101)
    assert len(store.loaded) == count + 1
    assert store.entries == {}
    assert len(store.outputs.matches) == 1
    assert len(store.outputs.timeouts) == 1_999


@pytest.mark.parametrize("looks", [FAST, SLOW], ids=["compiled", "called"])
@pytest.mark.slow
def test_a_base_is_rewritten_when_much_of_it_has_changed(looks: str) -> None:
    """And its changes go; deadlines of what is left of it stay known."""
    store = Store(plan_of(PAIR.format("r", "key", looks)), bucket_size=1 << 20)
    keys = [f"key {number}" for number in range(100)]
    for number, key in enumerate(keys):
        store.advance(several(f"a=1@{number + 1}", [key]), number + 1)
    (base,) = {name for name in store.entries if not name.endswith(CHANGES)}
    written = []
    for number in range(50):
        store.advance([], 101 + number)  # a deadline each
        assert store.held() == {"r": 99 - number}
        written.append(set(store.stored))
        assert len(store.outputs.timeouts) == number + 1
        assert store.live == {"r": 99 - number}
    assert {base + CHANGES} in written
    assert {base, base + CHANGES} in written
    store.change(plan_of(PAIR.format("r", "key", looks), PAIR.format("s", "key", looks)))
    store.advance([], 151)  # another rule changes nothing about what is written
    assert set(store.stored) == {base + CHANGES}
    store.advance([], 1_000)
    assert store.entries == {}
    assert len(store.outputs.timeouts) == 100


@pytest.mark.slow
@property_of
@given(
    rule_sets(), batches("abcdefgh"), st.sampled_from([1, 200, 1_500]), st.sampled_from([1, 900])
)
def test_buckets_and_portions_change_nothing(
    rule_set: list[Rule], stream: list[tuple[list[Record], int]], bucket_size: int, portion: int
) -> None:
    """However large buckets are, and however many are read together."""
    plan = compile_rules(rule_set)
    one, other = Store(plan, bucket_size=1 << 20), Store(plan, bucket_size=bucket_size)
    for records, watermark in stream:
        one.advance(records, watermark)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("spark_cep.pipeline.match.partitioning_batch.PORTION", portion)
            other.advance(records, watermark)
        assert other.found == one.found
        assert other.live == one.live


# Rules that come, go and come again.


def test_cold_buckets_keep_few_rule_sets() -> None:
    """What columns meant when they were written is in the group's value; each batch renews a few
    buckets that nothing touches, and the others find what they hold."""
    pair, texts = PAIR.format("r", "key", FAST), ["key", "name", "price"]
    store = Store(plan_of(pair), bucket_size=100)
    keys = [f"key {number}" for number in range(300)]
    store.advance(several("a=1@1", keys), 1)
    for number, columns in enumerate([*permutations(texts), *permutations(texts, 2)]):
        measures = [MEASURE.format(f"m{place}", each) for place, each in enumerate(columns)]
        store.change(plan_of(*measures, pair))
        # Of one bucket at least, so each rule set is that of some entries.
        store.advance(several(f"x=1@{number + 2}", [keys[number]]), number + 2)
        store.advance(several(f"a=1@{number + 2}", [f"new {number}"]), number + 2)
    for _ in range(40):
        store.advance([], number + 2)
    assert store.group is not None
    stored = unpack(store.group)
    # Some of them were there before, and this one.
    assert 1 < len(set(stored["stale"].values())) <= MOST_MEANINGS
    assert len(stored["meanings"]) <= MOST_MEANINGS + 1
    store.advance(several("b=2@30", keys), 30)
    assert len([match for match in store.outputs.matches if match.rule_id == "r"]) == len(keys)


@pytest.mark.parametrize("looks", [FAST, SLOW], ids=["compiled", "called"])
def test_a_rule_that_comes_again_finds_nothing(looks: str) -> None:
    """What it left is not taken up, though no batch has touched the bucket since."""
    rule, other = PAIR.format("r", "key", looks), PAIR.format("s", "key", looks)
    store = Store(plan_of(rule, other))
    store.advance(several("a=1@1", "klm"), 1)
    assert store.live == {"r": 3, "s": 3}
    store.change(plan_of(other))
    store.advance(several("x=1@2", "k"), 2)
    assert store.gone == [("r", 1, 3)]
    assert store.live == {"s": 3}
    store.change(plan_of(other, rule))
    store.advance(several("a=1@4", "n"), 4)
    assert store.gone == []
    assert store.live == {"s": 4, "r": 1}
    store.advance(several("b=2@5", "klmn"), 5)
    assert Counter(m.rule_id for m in store.outputs.matches) == {"s": 4, "r": 1}
    assert store.live == {"s": 0, "r": 0}


def test_a_key_that_no_rule_has_any_more() -> None:
    """Its entries are removed with the next batch, unread."""
    kept, gone = PAIR.format("r", "key", FAST), PAIR.format("s", "[name, key]", SLOW)
    store = Store(plan_of(kept, gone))
    store.advance(several("a=1@1", "klm"), 1)
    mine = {bucket_name(store, key) for key in "klm"}
    theirs = set(store.entries) - mine
    assert theirs
    store.change(plan_of(kept))
    store.advance([], 2)
    assert not store.loaded
    assert set(store.stored) == theirs
    assert set(store.entries) == mine


@st.composite
def others(draw: st.DrawFn, phase: int) -> list[Rule]:
    """Rules of one rule set that the others do not have."""
    count = draw(st.integers(0, 2))
    made = [draw(rules(f"other {phase} {number}")) for number in range(count)]
    return [replace(LEFT, id=f"left {phase}"), *made] if draw(st.booleans()) else made


@pytest.mark.slow
@settings(property_of, max_examples=30)
@given(rules("r"), st.tuples(*map(others, range(3))), batches(), st.data())
def test_other_rules_change(
    rule: Rule,
    sets: Sequence[list[Rule]],
    stream: list[tuple[list[Record], int]],
    data: st.DataObject,
) -> None:
    """Bits and columns of what is stored move; rules that stay go on as if alone."""
    staying = [rule, replace(LEFT, id="left")]
    alone = LocalJob(compile_rules(staying), TYPES)
    plans = [compile_rules(data.draw(st.permutations([*staying, *more]))) for more in sets]
    store = Store(plans[0])
    for number, (records, watermark) in enumerate(stream):
        store.change(plans[min(number, 2)])
        store.advance(records, watermark)
        alone.advance(records, watermark)
        for one in ("r", "left"):
            assert without_payload(findings(store.outputs, one)) == without_payload(
                findings(alone.outputs, one)
            )
            assert store.live[one] == live_of(alone)[one]


@settings(property_of, max_examples=40)
@given(rules("r"), batches(), st.integers(0, 4), st.booleans())
def test_a_rule_that_comes_sees_what_is_read_from_then_on(
    rule: Rule, stream: list[tuple[list[Record], int]], coming: int, again: bool
) -> None:
    """Its output is that of a job with it alone that begins with the batch in which it comes, at
    the watermark of then. Events that wait are not its own, whatever it shares with other rules;
    nor are they when it was there before and went (``again``)."""
    staying = [replace(rule, id="twin"), replace(LEFT, id="left")]
    before, after = compile_rules(staying), compile_rules([rule, *staying])
    store = Store(after if again else before)
    alone = LocalJob(after, TYPES)
    at = -10
    for number, (records, watermark) in enumerate(stream):
        if number == coming:
            if again:  # it goes, and comes behind a batch that reads nothing
                store.change(before)
                store.advance([], at)
                alone.advance([], at)
            store.outputs = Outputs()
            store.change(after)
            alone = LocalJob(compile_rules([rule]), TYPES, watermark=alone.watermark)
        store.advance(records, watermark)
        alone.advance(records, watermark)
        at = watermark
    if coming < len(stream):
        assert findings(store.outputs, "r")[:2] == findings(alone.outputs, "r")[:2]
        assert store.live["r"] == live_of(alone)["r"]


def test_absence_of_what_was_read_before_the_rule() -> None:
    """An order and its payment wait; a rule that comes then reports neither as not paid."""
    other = PAIR.format("other", "key", "TRUE").replace("100 ms", "10 ms")
    absent = PAIR.format("absent", "key", "price > 0").replace("100 ms", "10 ms")
    absent = absent.replace("followed_by", "not_followed_by")
    store = Store(plan_of(other))
    store.advance(several("a=1@10 b=2@12", "k"), 5)
    store.change(plan_of(other, absent))
    store.advance([], 11)
    store.advance(several("a=3@30", "k"), 50)
    assert [(m.rule_id, m.start) for m in store.outputs.matches] == [("other", 10), ("absent", 30)]


def test_what_rule_sets_meant_is_forgotten() -> None:
    """Only those are remembered under which something was written that is still there: a bucket
    that no batch touches, and events that wait."""
    store = Store(plan_of(PAIR.format("r", "key", FAST)))

    def meanings() -> int:
        assert store.group is not None
        return len(unpack(store.group)["meanings"])

    store.advance(several("a=1@1", "k"), 1)
    store.advance(several("a=1@40", "k"), 2)
    for number in range(5):
        other = PAIR.format("other", "key", f"price = {number}")
        store.change(plan_of(PAIR.format("r", "key", FAST), other))
        store.advance([], 3 + number)
        assert meanings() == 2
    store.advance(several("b=2@39", "k"), 39)  # the bucket is written, the event waits
    assert (len(store.outputs.matches), meanings()) == (1, 2)
    store.advance([], 40)
    assert meanings() == 1
    store.advance(several("b=2@41", "k"), 41)
    assert len(store.outputs.matches) == 2


def test_what_is_stored_gets_new_columns_as_null() -> None:
    """An event that came before a rule that reads more of it has no value there."""
    store = Store(plan_of(PAIR.format("r", "key", "TRUE")))
    (record,) = several("a=1@5", "k")
    store.advance([record], 1)  # waits
    wants = PAIR.format("s", "key", "(LAST(a.price) IS NULL OR LAST(a.price + 0) = 1)")
    fast = PAIR.format("t", "key", "LAST(a.price) IS NULL")
    store.change(plan_of(fast, wants, PAIR.format("r", "key", "TRUE")))
    store.advance([], 5)
    store.advance(several("b=9@6", "k"), 6)
    assert {m.rule_id for m in store.outputs.matches} >= {"r"}
    for match in store.outputs.matches:
        assert [taken.at for taken in match.steps["a"]] == [record.at]


# Wide masks, payload, late events.


def test_many_conditions() -> None:
    """More than one word of bits, of compiled and called conditions."""
    texts = [
        PAIR.format(f"r{n}", "key", f"price = {n} AND {SLOW if n % 9 == 0 else FAST}")
        for n in range(130)
    ]
    plan = plan_of(*texts)
    assert words_of(len(plan.partitionings[0].conditions)) == 3
    store, job = Store(plan), LocalJob(plan, TYPES)
    for number, price in enumerate([0, 61, 62, 63, 123, 124, 125, 126, 129, 128]):
        events = several(f"a=-1@{3 * number} b={price}@{3 * number + 1}", "kl")
        for one in (store, job):
            one.advance(events, 3 * number)
    for one in (store, job):
        one.advance([], END_OF_TIME)
    assert store.found[1:] == findings(job.outputs)[1:]
    assert {m.rule_id for m in store.outputs.matches} >= {"r61", "r62", "r63", "r126", "r129"}


def test_payload() -> None:
    """Where a rule emits its events, they come back as they were, from state too."""
    store = Store(plan_of("emit: {events: all}\n" + PAIR.format("r", "key", FAST).lstrip()))
    store.advance(several("a=1@1", "k"), 0)
    store.advance([], 1)
    store.advance(several("b=2@2", "k"), 2)
    (match,) = store.outputs.matches
    values = [json.loads(t.payload or b"") for taken in match.steps.values() for t in taken]
    assert [(v["name"], v["price"], v["key"]) for v in values] == [("a", 1, "k"), ("b", 2, "k")]


def test_late_events_once() -> None:
    """However many partitionings wanted the event; with what the record had."""
    store = Store(plan_of(PAIR.format("r", "key", FAST), PAIR.format("s", "[key, name]", SLOW)))
    store.advance(several("a=1@5", "k"), 5)
    late = several("a=1@5", "l")
    store.advance([*late, *several("a=1@6 x=0@1", "m")], 6)
    (found,) = store.late
    assert found.at == late[0].at
    assert (found.time, found.watermark, found.record_key) == (5, 5, b"key")
    assert found.headers == (("h", b"\x00x"), ("none", None))
    assert store.live == {"r": 2, "s": 2}


# What is refused.


@pytest.fixture
def group_state() -> dict[str, Any]:
    """The state of a group that has run."""
    store = Store(plan_of(PAIR.format("r", "key", FAST)))
    store.advance(several("a=1@1", "k"), 1)
    assert store.group is not None
    return unpack(store.group)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("format", 1, "state has format 1, this version reads 13"),
        ("key_groups", 7, "written with 7 key groups, and the checkpoint's offsets say 1"),
    ],
)
def test_another_layout(
    setting: str, value: int, message: str, group_state: dict[str, Any]
) -> None:
    """State of another format or layout is refused, with what to do."""
    store = Store(plan_of(PAIR.format("r", "key", FAST)))
    store.group = pack({**group_state, setting: value})
    with pytest.raises(StateError, match=message):
        store.advance([], 2)


@pytest.mark.parametrize("looks", [FAST, SLOW], ids=["compiled", "called"])
def test_damage(looks: str) -> None:
    """Of a bucket, and of what says which conditions its events had."""
    text = PAIR.format("r", "key", looks)
    damages: tuple[Callable[[bytes], bytes], ...] = (
        lambda data: data[:-1],
        lambda data: data + b"x",
    )
    for damage in damages:
        store = Store(plan_of(text))
        store.advance(several("a=1@1", "k"), 1)
        ((name, data),) = store.entries.items()
        store.entries[name] = damage(data)
        with pytest.raises(StateError, match="damaged"):
            store.advance(several("b=2@2", "k"), 2)
    store = Store(plan_of(text))
    store.advance(several("a=1@1", "k"), 1)
    assert store.group is not None
    store.group = pack({**unpack(store.group), "meanings": {}})
    store.change(plan_of(PAIR.format("s", "key", "TRUE"), text))
    with pytest.raises(StateError, match="does not describe"):
        store.advance(several("b=2@2", "k"), 2)


def test_a_bucket_that_is_lost() -> None:
    """What the group knows of is missed, not taken for nothing."""
    store = Store(plan_of(PAIR.format("r", "key", FAST)))
    store.advance(several("a=1@1", "k"), 1)
    store.entries.clear()
    with pytest.raises(StateError, match=r"the state lacks entry .* of key group 0"):
        store.advance(several("b=2@2", "k"), 2)


# Types that change.


@pytest.mark.parametrize(
    ("before", "after"),
    [(RecordTypes(), TYPES), (TYPES, RecordTypes()), (TYPES, OTHER_TYPES), (OTHER_TYPES, TYPES)],
    ids=["to known", "to unknown", "to wider", "to narrower"],
)
@pytest.mark.parametrize("looks", [FAST, SLOW], ids=["compiled", "called"])
def test_types_change(looks: str, before: RecordTypes, after: RecordTypes) -> None:
    """When types become known, no longer agree, or are others, an unchanged rule keeps its partial
    matches and the events that wait, with their values."""
    text = PAIR.format("r", "key", looks)
    store = Store(plan_of(text), before)
    store.advance(several("a=1@1", "klmn"), 1)
    store.advance(several("b=5@9", "m"), 2)
    store.advance(several("b=1@9", "n"), 2)
    store.change(plan_of(text), after)
    store.advance(several("b=2@3", "kl"), 9)
    assert sorted(str(match.key) for match in store.outputs.matches) == ["k", "l", "m"]
    assert store.outputs.dead_letters == []
    assert store.live == {"r": 1}
