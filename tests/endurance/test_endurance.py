"""The endurance run's own parts: the stream, and what the comparison expects."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

import fastavro
import pytest
import yaml

from bench.soak.stream import PARTITIONS
from spark_cep.pattern.document.loading import load_rules
from spark_cep.rules.rule_set import RuleSet, assemble
from tests.endurance.author import UNTOUCHED, untouched
from tests.endurance.comparison import Epoch, expected
from tests.endurance.run import Waited
from tests.endurance.stream import KINDS, SCHEMA, Stream

STREAM = Stream(start_ms=1_700_000_000_000, rate=400, share=0.5, seed=3)
SECONDS = 40


def read(value: bytes) -> dict[str, object]:
    """The body of a record."""
    made = fastavro.schemaless_reader(io.BytesIO(value[5:]), SCHEMA, None)
    assert isinstance(made, dict)
    return {**made, "ts": round(made["ts"].timestamp() * 1000)}


def upto(second: int) -> dict[int, int]:
    """The offsets behind a second's records."""
    return dict.fromkeys(range(PARTITIONS), second * STREAM.rate // PARTITIONS)


def test_what_is_produced_is_what_is_compared() -> None:
    """Bytes, and records for the matcher; made again they are the same."""
    produced: dict[tuple[int, int], dict[str, object]] = {}
    for second in range(3):
        for place, value in enumerate(STREAM.values(second, 7)):
            offset, partition = divmod(second * STREAM.rate + place, PARTITIONS)
            produced[partition, offset] = read(value)
    useful = STREAM.useful(upto(0), upto(3))
    assert {at for at, event in produced.items() if str(event["kind"]) in KINDS} == {
        (record.at.partition, record.at.offset) for record in useful
    }
    for record in useful:
        event = produced[record.at.partition, record.at.offset]
        assert {**record.values, "ts": record.time} == {
            name: value for name, value in event.items() if name != "note"
        }
    part = STREAM.useful(upto(1), upto(2))
    assert [r.at for r in part] == [r.at for r in useful if 100 <= r.at.offset < 200]


def test_the_newest_time_is_that_of_all_records() -> None:
    """Also of those that no rule reads; at any offset."""
    for ends in ({0: 1, 1: 0}, {0: 250, 1: 99, 2: 301, 3: 400}):
        wanted: dict[int, int] = {}
        for partition, end in ends.items():
            times = [
                int(STREAM.second(number // STREAM.rate).time[number % STREAM.rate])
                for number in (offset * PARTITIONS + partition for offset in range(end))
            ]
            wanted |= {partition: max(times)} if times else {}
        assert STREAM.newest(ends) == wanted


@pytest.fixture(scope="module")
def whole() -> list[Any]:
    """The results of the untouched rules over all of the stream."""
    return [*expected(STREAM, [Epoch(loaded(*untouched()), upto(0), upto(SECONDS))])]


def test_untouched_rules_do_not_depend_on_the_sets_around_them(whole: list[Any]) -> None:
    """One rule set or three: each rule finds something, and the same."""
    rules = loaded(*untouched())
    names = {each.rule.id for each in rules.loaded}
    cut = [
        Epoch(rules, upto(first), upto(last)) for first, last in ((0, 11), (11, 12), (12, SECONDS))
    ]
    assert sorted(expected(STREAM, cut)) == sorted(whole)
    assert len({name for name, _ in whole}) == len(whole) > 20 * len(names)
    assert {kind for (kind, _), _ in whole} == {f"{UNTOUCHED} match", f"{UNTOUCHED} timeout"}


def test_a_rule_that_comes_begins_behind_what_was_read(whole: list[Any]) -> None:
    """It finds what it would find alone in the events from its beginning on; untouched rules find
    the same with it and without."""
    added = {**untouched()[0], "id": "changing-0001"}
    late = [
        Epoch(loaded(*untouched()), upto(0), upto(20)),
        Epoch(loaded(*untouched(), added), upto(20), upto(SECONDS)),
    ]
    found = [*expected(STREAM, late)]
    changing = {each for each in found if each[0][0].startswith("changing")}
    begins = datetime.fromtimestamp((max(STREAM.newest(upto(20)).values()) + 1) / 1000, UTC)
    from_then = loaded({**added, "effective_from": begins.isoformat(timespec="milliseconds")})
    assert changing == set(expected(STREAM, [Epoch(from_then, upto(0), upto(SECONDS))]))
    always = [*expected(STREAM, [Epoch(loaded(added), upto(0), upto(SECONDS))])]
    assert 0 < len(changing) < len(always)
    assert sorted(whole) == sorted(set(found) - changing)


def test_percentiles() -> None:
    """The value that so many are not above."""
    assert [Waited(range(1, 101)).at(share) for share in (0.5, 0.99, 1.0)] == [50, 99, 100]
    assert Waited([3.0]).at(0.5) == 3.0


def loaded(*rules: dict[str, Any]) -> RuleSet:
    """A set of these rules alone."""
    text = "---\n".join(yaml.safe_dump(rule) for rule in rules)
    return assemble(load_rules(text, "untouched.yaml"))
