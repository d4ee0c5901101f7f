"""The second workload without the job: its stream, its rules, and how its outputs are compared."""

from __future__ import annotations

import datetime as dt
import io
import re
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest

from bench import avro_pieces
from bench.feed import Stream
from bench.outputs import DisagreementError, Found, check_same, full_line_of, without_ended
from bench.payments import Amount, payments
from bench.rules import PAYMENTS, payments_rules
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from spark_cep.rules.sources.folder import read_rules
from tests.reference.local import LocalJob, Record

JAVA_RULES = Path(__file__).parents[2] / "bench/flink/src/main/java/bench/job/PaymentRules.java"
NAMES = ("card-test", "declines", "rising")


def decoded(stream: Stream) -> list[dict[str, Any]]:
    """The events of a stream, each of which must be Avro of its schema and nothing more."""
    schema = fastavro.parse_schema(stream.schema)
    found = []
    for key, body in stream.events:
        source = io.BytesIO(body)
        event: Any = fastavro.schemaless_reader(source, schema, None)
        assert not source.read()
        assert event["card"]["id"] == key
        found.append(event)
    return found


@pytest.mark.parametrize("value", [0, 1, -1, 63, 64, -65, 300, 2**40, -(2**40)])
def test_a_long_by_hand_is_avro(value: int) -> None:
    """Whatever its sign and length."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", value)
    assert avro_pieces.long(value) == out.getvalue()


def test_longs_are_encoded_together() -> None:
    """As each alone would be; those of other lengths are refused."""
    values = np.array([1_700_000_000_000_000, 1_700_000_009_999_999])
    assert avro_pieces.longs(values) == (b"".join(map(avro_pieces.long, values.tolist())), 8)
    with pytest.raises(ValueError, match="same length"):
        avro_pieces.longs(np.array([1, 1_000_000]))


@pytest.mark.parametrize("amount", Amount)
def test_payments_are_avro_of_the_schema(amount: Amount) -> None:
    """About 430 bytes with framing; eight of ten are approved, some cities are unknown."""
    stream = payments(2_000, amount)
    sizes = [len(body) for _, body in payments(2_000, amount).events]
    assert 400 < np.mean(sizes) < 440
    events = decoded(stream)
    status = Counter(event["status"] for event in events)
    assert 0.75 < status["approved"] / len(events) < 0.85
    assert status["declined"] > 100
    assert {event["merchant"]["city"] for event in events} == {None, "Town"}
    assert {type(event["amount"]).__name__ for event in events} == {
        "Decimal" if amount is Amount.DECIMAL else "float"
    }


def test_the_same_seed_gives_the_same_payments() -> None:
    """The first ones, however many there are; another seed gives others."""
    few = list(payments(50).events)
    assert list(islice(payments(70_000).events, 50)) == few
    assert list(payments(50, seed=6).events) != few


def test_nothing_depends_on_the_order_of_equal_times() -> None:
    """No card pays more than 50.00, and no merchant declines, twice in a millisecond, across what
    is drawn together, too."""
    paid: set[tuple[str, int]] = set()
    declined: set[tuple[str, int]] = set()
    among = "status", "amount", "ts"
    stream = payments(70_000, Amount.DOUBLE)
    reader = fastavro.parse_schema(stream.schema)
    for key, body in stream.events:
        event: Any = fastavro.schemaless_reader(io.BytesIO(body), reader, None)
        status, amount, time = (event[name] for name in among)
        millisecond = int(time.timestamp() * 1000)
        if amount != 50:
            assert (key, millisecond) not in paid
            paid.add((key, millisecond))
        if status == "declined":
            assert (event["merchant"]["id"], millisecond) not in declined
            declined.add((event["merchant"]["id"], millisecond))
    assert len(declined) > 5_000


def outputs(count: int, cards: int, merchants: int) -> LocalJob:
    """What the rules find in the first payments, of fewer cards and merchants."""
    rules = [loaded.rule for loaded in load_rules(PAYMENTS.read_text("utf-8"), "payments")]
    job = LocalJob(compile_rules(rules))
    records = []
    for number, event in enumerate(decoded(payments(count))):
        event["card"]["id"] = f"card-{int(event['card']['id'][5:]) % cards}"
        event["merchant"]["id"] = f"m-{int(event['merchant']['id'][2:]) % merchants}"
        time = int(event["ts"].timestamp() * 1000)
        records.append(Record(Coordinates("payments", 0, number), time, event))
    job.advance(records, 2**50)
    return job


def test_each_rule_finds_something() -> None:
    """A comparison of nothing with nothing would say nothing."""
    found = outputs(8_000, 300, 20).outputs
    assert {match.rule_id for match in found.matches} == set(NAMES)
    assert {timeout.rule_id for timeout in found.timeouts} == set(NAMES)


def test_no_rule_begins_with_the_closing_event() -> None:
    """It is the last of its partition: what it began would be decided by one side alone."""
    stream = payments(10)
    key, body = stream.closing(3)
    (event,) = decoded(Stream(stream.schema, [(key, body)], stream.closing))
    assert event["ts"] > max(event["ts"] for event in decoded(stream)) + dt.timedelta(minutes=30)
    rules = [loaded.rule for loaded in load_rules(PAYMENTS.read_text("utf-8"), "payments")]
    job = LocalJob(compile_rules(rules))
    job.advance([Record(Coordinates("payments", 0, 0), 1_000, event)], 2**50)
    assert not job.outputs.timeouts


def test_flink_has_each_rule_with_the_same_steps(tmp_path: Path) -> None:
    """Under the same name, in the same order, with the same window."""
    java = JAVA_RULES.read_text("utf-8")
    for read in read_rules(payments_rules(tmp_path)).rules:
        name = re.sub("-.", lambda found: found[0][1].upper(), read.id)
        case = re.search(rf" {name}\(\) {{(.+?)within\(Duration.ofMinutes\((\d+)", java, re.DOTALL)
        assert case is not None
        steps = re.findall(r'(?:begin|followedBy)\("(\w+)"', case[1])
        text = PAYMENTS.read_text("utf-8").split(f"id: {read.id}\n")[1].split("---")[0]
        assert re.findall(r"step: (\w+)", text) == steps
        assert f"within: {case[2]} minute" in text


def record(**changed: Any) -> dict[str, Any]:
    """A match as it is read back."""
    time = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    events = [{"partition": 1, "offset": 9}]
    return {
        "rule_id": "rising",
        "key": '["card-1","ios"]',
        "start": time,
        "time": time + dt.timedelta(milliseconds=5),
        "measures": {"total": 1.5, "city": None},
        "steps": [{"step": "b", "events": events}, {"step": "a", "events": events}],
        **changed,
    }


def test_a_full_line_tells_rule_key_span_and_measures() -> None:
    """Doubles by their bits, since Java and Python do not print all of them alike."""
    start = 1_767_225_600_000
    assert full_line_of("m", record()) == (
        f"m|rising,card-1,ios,{start},{start + 5}|a=1:9|b=1:9|city=null|total=4609434218613702656"
    )
    assert full_line_of("t", record(key="card-1")) == f"t|rising,card-1,{start},|a=1:9|b=1:9"


def test_timeouts_of_what_a_match_has_ended_do_not_count() -> None:
    """Those that began inside it, of the same rule and key; all others do."""
    matches = ["m|r,k,100,200|a=0:1"]
    ended = ["t|r,k,101,|a=0:2", "t|r,k,200,|a=0:3"]
    others = ["t|r,k,100,|a=0:4", "t|r,k,201,|a=0:5", "t|r,l,150,|a=0:6", "t|s,k,150,|a=0:7"]
    found, count = without_ended(Found.of([*matches, *ended, *others]))
    assert count == 2
    check_same("ours", Found.of([*matches, *others]), "Flink", found)
    with pytest.raises(DisagreementError, match="timeouts differ"):
        check_same("ours", Found.of([*matches, *others[1:]]), "Flink", found)
