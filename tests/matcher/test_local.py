"""Rule sets in this process: inputs, record types, keys, late events, failing conditions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from tests.matcher.runs import END_OF_TIME, BothMatchers, compiled, job, matched, timed_out, written
from tests.reference.local import LocalJob, Record

PAIR = """
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: followed_by, where: "name = 'b'"}
"""


def untyped(text: str) -> BothMatchers:
    """A job for rules in YAML over events of which nothing is known."""
    return BothMatchers(compiled(text), RecordTypes())


def record(offset: int, time: int, **values: object) -> Record:
    """A record of the only input."""
    return Record(Coordinates("t", 0, offset), time, values)


def test_order_of_equal_times() -> None:
    """Equal times are applied in the order of topic, partition and offset."""
    first, second = written("a@5 b@5")
    one = job(PAIR)
    one.advance([second, first], END_OF_TIME)
    assert matched(one) == [("a0 b1", 5)]
    other = job(PAIR)
    other.advance([Record(Coordinates("s", 9, 9), 5, second.values), first], END_OF_TIME)
    assert matched(other) == []


@pytest.mark.parametrize(("time", "late"), [(4, True), (5, True), (6, False)])
def test_late_is_at_or_before_the_watermark(time: int, late: bool) -> None:
    """A late event is kept aside with the watermark, and not applied."""
    one = job(PAIR)
    one.advance([], 5)
    one.advance(written(f"a@{time} b@9"), END_OF_TIME)
    assert [(event.time, event.watermark) for event in one.late] == ([(time, 5)] if late else [])
    assert bool(matched(one)) is not late


def test_the_watermark_never_goes_back() -> None:
    """A lower watermark than before changes nothing."""
    one = job(PAIR)
    one.advance([], 5)
    one.advance(written("a@3"), 2)
    assert (one.watermark, len(one.late)) == (5, 1)


def test_events_wait_for_the_watermark() -> None:
    """Nothing is applied ahead of it; what waits survives a restart."""
    one = job(PAIR)
    one.advance(written("a@5 b@7"), 6)
    one.reload()
    assert matched(one) == []
    one.advance([], 7)
    assert matched(one) == [("a0 b1", 7)]


def test_inputs() -> None:
    """A rule sees the inputs that it names, or all of them."""
    one = job(f"id: named\nevents: orders\nkey: key\n{PAIR}\n---\nid: all\nkey: key\n{PAIR}")
    for number, (name, source) in enumerate([("a", "orders"), ("b", "payments")]):
        at = Coordinates(source, 0, number)
        one.advance([Record(at, number, {"name": name, "key": "k"}, source)], number)
    assert [match.rule_id for match in one.outputs.matches] == ["all"]
    (part,) = one.plan.partitionings
    assert part.reads("payments")
    named = job(f"id: named\nevents: orders\nkey: key\n{PAIR}").plan.partitionings[0]
    assert (named.reads("orders"), named.reads("payments")) == (True, False)


def test_record_types() -> None:
    """``of_type`` is the record's name, with or without its namespace."""
    one = job(
        """
pattern:
  - {step: a, of_type: Order}
  - {step: b, after: followed_by, of_type: com.acme.Payment, where: "amount >= LAST(a.amount)"}
emit: {measures: {paid: "LAST(b.amount)", both: "COUNT(*)"}, events: [amount]}
"""
    )
    names = ["com.acme.Payment", "com.acme.Order", "Payment", "com.acme.Payment", None]
    for number, name in enumerate(names):
        values = {"key": "k", "amount": 10 + number}
        one.advance([Record(Coordinates("t", 0, number), number, values, type=name)], number)
    (match,) = one.outputs.matches
    assert match.measures == {"paid": 13, "both": 2}
    assert [event.type for events in match.steps.values() for event in events] == [
        "com.acme.Order",
        "com.acme.Payment",
    ]
    assert match.steps["b"][0].columns == {"amount": 13}


def test_nested_columns() -> None:
    """A dotted name reads a record inside the record; of a record that is NULL, NULL."""
    one = untyped(
        """
pattern:
  - {step: a, where: "user.home.city = 'X'"}
  - {step: b, after: followed_by, where: "user.home.city = LAST(a.user.home.city)"}
emit: {events: [user.home.city]}
"""
    )
    homes: list[object] = [
        None,
        {"home": None},
        {"home": {"city": "X"}},
        {"home": {}},
        {"home": {"city": "X"}},
    ]
    one.advance([record(n, n, key="k", user=home) for n, home in enumerate(homes)], END_OF_TIME)
    assert matched(one) == [("a2 b4", 4)]
    assert one.outputs.matches[0].steps["a"][0].columns == {"user.home.city": "X"}


def test_keys() -> None:
    """Keys are kept apart, several parts as well; each rule has its own."""
    one = untyped(f"id: two\nkey: [key, flag]\n{PAIR}\n---\nid: one\nkey: key\n{PAIR}")
    flags = [True, False, True]
    for number, (name, flag) in enumerate(zip("abb", flags, strict=True)):
        one.advance([record(number, number, name=name, key="k", flag=flag)], number)
    by_rule = {match.rule_id: match for match in one.outputs.matches}
    assert by_rule["two"].steps["b"][0].at.offset == 2
    assert by_rule["one"].steps["b"][0].at.offset == 1
    assert by_rule["one"].key == "k"
    assert len({match.match_id for match in one.outputs.matches}) == 2


def test_a_rule_without_key() -> None:
    """One partition for all events."""
    one = job(f"id: r\n{PAIR}")
    one.advance([*written("a@1", key="k"), record(7, 2, name="b", key="other")], END_OF_TIME)
    assert [(match.key, match.time) for match in one.outputs.matches] == [(None, 2)]


def test_failing_condition_on_the_event_alone() -> None:
    """It is not true; each rule that has it gets a dead letter, and other events go on."""
    conditions = {"first": "price > 1", "same": "price > 1", "other": "name = 'b'"}
    rules = "\n---\n".join(
        f'id: {name}\nkey: key\npattern: [{{step: a, where: "{where}"}}]'
        for name, where in conditions.items()
    )
    one = job(rules)
    values = [("much", "b"), (5, "b")]
    stream = [record(n, n, key="k", price=p, name=name) for n, (p, name) in enumerate(values)]
    one.advance(stream, END_OF_TIME)
    assert sorted((match.rule_id, match.time) for match in one.outputs.matches) == [
        ("first", 1),
        ("other", 0),
        ("other", 1),
        ("same", 1),
    ]
    assert [(x.rule_id, x.step, x.reason, x.at.offset) for x in one.outputs.dead_letters] == [
        ("first", "a", "condition_failed", 0),
        ("same", "a", "condition_failed", 0),
    ]


def test_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is remembered of masks and outcomes is forgotten at the bound, without harm."""
    for module in ("tests.reference.keyed", "spark_cep.matcher.steps.transitions"):
        monkeypatch.setattr(f"{module}._MOST_ENTRIES", 1)
    one = job(PAIR.replace("name = 'b'", "name = 'b' AND price > LAST(a.price)"))
    one.advance(written("a=1 x a=2 x b=2 b=3 x a=4 b=5"), END_OF_TIME)
    assert matched(one) == [("a0 b4", 5), ("a2 b5", 6), ("a7 b8", 9)]
    assert timed_out(one) == []


def test_an_event_without_its_key_is_a_dead_letter() -> None:
    """A NULL key is no key: the event takes no part, and is named."""
    (loaded,) = load_rules("{id: r, key: k, pattern: [{step: a, where: n = 1}]}", "<test>")
    job = LocalJob(compile_rules([loaded.rule]))
    at = Coordinates("t", 0, 7)
    job.advance([Record(at, 1, {"k": None, "n": 1})], 10)
    assert not job.outputs.matches
    (letter,) = job.outputs.dead_letters
    assert (letter.at, letter.reason) == (at, "missing_key")


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_events_of_one_millisecond(cut: int) -> None:
    """They are applied in the order of their microseconds, also when they come in several batches
    and the state is written and read in between; of one microsecond in that of offsets."""
    one = job(PAIR)
    (b, a, late_a) = (
        replace(record, time=5, micros=micros)
        for record, micros in zip(written("b a a"), (300, 200, 400), strict=True)
    )
    arrived = [b, late_a, a]
    for start in range(0, 3, cut):
        one.advance(arrived[start : start + cut], 4)
        one.reload()
    one.advance([], 5)
    # The text is in the order of offsets.
    assert matched(one) == [("b0 a1", 5)]
