"""Damaged records through the decoding stage: its verdict is the one that its dead letters explain.

The stage never fails; what it lets through fastavro takes too, and what fastavro refuses it
refuses. The other way round the decoder is stricter about numbers that are not written as Avro
writes them (an index below 0, a long in eleven bytes, an int of 40 bits), so there the verdicts are
held against each other for bytes that a writer could have written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from random import Random
from typing import Any, NamedTuple

import fastavro
import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from spark_cep.codecs.avro.broken_records import decoding_fault
from spark_cep.codecs.avro.schema import parse
from spark_cep.codecs.output.dead_letters import Reason
from spark_cep.codecs.record_faults import OF_RECORDS, Fault
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.framing import FramingError, frame, prefixed
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas, WriterSchema
from spark_cep.codecs.registry.schema_ids import SchemaId
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions
from spark_cep.pipeline.decode.pack import Packer
from spark_cep.pipeline.wire.event_packets import PackedPartitioning
from tests.e2e import poison
from tests.pipeline.decode.reference import Kafka, Setting, read

RECORDS = 1_500
FLAT, NESTED = 1, 2
DAY = 86_400_000
NOW = 1_769_817_600_000
SCHEMAS = {
    FLAT: parse(json.dumps(poison.EVENT), "flat"),
    NESTED: parse(json.dumps(poison.NESTED), "nested"),
}
READER = SCHEMAS[FLAT]
#: What varints of lengths, counts, indexes and values are overwritten with.
EXTREMES = [-1, 0, 1, 2, 2**7, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**31), -(2**63)]


class Judged(NamedTuple):
    """What became of one record."""

    value: bytes
    fault: Fault
    time: int | None
    reason: str | None


def sound(random: Random) -> bytes:
    """A record as a writer writes it; its values may be odd, or beyond their types."""
    number = poison.number
    event = poison.values(
        random.choice(["", "k", "ключ"]), random.choice("abcd"), random.randrange(10**12)
    )
    event |= {"tags": [random.choice("xyz")] * random.randrange(4), "n": random.randrange(9)}
    raw: dict[str, bytes] = {}
    if random.random() < 0.3:
        raw["amount"] = poison.text(random.randbytes(random.randrange(1, 14)))
    if random.random() < 0.3:
        raw["wide"] = poison.text(random.randbytes(random.randrange(1, 18)))
    if random.random() < 0.2:
        raw["seen"] = number(1) + number(random.getrandbits(64) - 2**63)
    if random.random() < 0.2:
        raw["day"] = number(random.getrandbits(32) - 2**31)
    if random.random() < 0.2:
        raw["name"] = poison.text(random.randbytes(random.randrange(4)))
    if random.random() < 0.1:
        raw["ts"] = number(1) + number(random.getrandbits(64) - 2**63)
    body = poison.body(event, **raw)
    if random.random() < 0.3:
        depth = random.choice([0, 3, 500, 40_000])
        return frame(NESTED, number(1) * depth + number(0) + body)
    return frame(FLAT, body)


def damaged(random: Random) -> bytes:
    """A record with up to three kinds of damage, or none, or no record at all."""
    if random.random() < 0.05:
        return random.randbytes(random.randrange(80))
    value = bytearray(sound(random))
    for _ in range(random.choice([0, 1, 1, 1, 2, 3])):
        first = random.choice([0, 5, 5, 5, 5])
        at = random.randrange(first, max(len(value), first + 1))
        match random.randrange(7):
            case 0:
                del value[at:]
            case 1:
                del value[at : at + random.randrange(4)]
            case 2:
                value[at:at] = random.randbytes(random.randrange(1, 4))
            case 3 if at < len(value):
                value[at] ^= 1 << random.randrange(8)
            case 4:
                value[at : at + 1] = poison.number(random.choice(EXTREMES))
            case 5:
                value[at:] = sound(random)[at:]
            case _:
                value[at:at] = b"\xff" * random.randrange(1, 12)
    return bytes(value)


@pytest.fixture(scope="module")
def catalogue() -> ResolvedSchemas:
    """Two writers, one that nests without end, of one record type."""
    event = EventType(0, "events", "e2e.Event", READER, ("t",), "ts", "auto")
    writers: dict[SchemaId, tuple[WriterSchema, ...]] = {
        number: (WriterSchema(number, schema, None, 0),) for number, schema in SCHEMAS.items()
    }
    return ResolvedSchemas((event,), writers)


def judged(catalogue: ResolvedSchemas, values: Sequence[bytes]) -> list[Judged]:
    """Each record's fault, time and dead letter, through the stage as the job has it."""
    documents = yaml.safe_dump_all(poison.rules())
    plan = compile_rules(loaded.rule for loaded in load_rules(documents, "fuzz.yaml"))
    setting = Setting(plan, catalogue, DecodeOptions(4, DAY, keep_all=True))
    records = [Kafka("t", 0, n, NOW, None, value) for n, value in enumerate(values)]
    rows = read(setting.decoder, records, NOW + DAY).rows
    faults = {row["offset"]: (Fault(row["fault"]), row["time"]) for row in rows.to_pylist()}
    packer = Packer(
        partitionings=tuple(
            PackedPartitioning.of(n, part) for n, part in enumerate(plan.partitionings)
        ),
        time_columns=("ts",),
        key_texts=(("k",),),
        max_ahead_ms=DAY,
        decoder=setting.decoder,
    )
    reasons: dict[int, str] = {}
    for letter in packer.judged(setting.decoder.reader, rows):
        assert letter.at.offset not in reasons
        assert letter.record_value == values[letter.at.offset]
        reasons[letter.at.offset] = letter.reason
    return [Judged(value, *faults[n], reasons.get(n)) for n, value in enumerate(values)]


def schema_id(value: bytes) -> int:
    """The id in front, or -1."""
    try:
        found = prefixed(value).schema
    except FramingError:
        return -1
    return found if isinstance(found, int) else -1


def as_written(value: bytes) -> dict[str, Any] | None:
    """The record's content where its bytes are those that a writer would write for it."""
    schema = poison.without_logical_types(SCHEMAS[schema_id(value)].json)
    datum: Any = fastavro.schemaless_reader(BytesIO(value[5:]), schema, None)
    again = BytesIO()
    fastavro.schemaless_writer(again, schema, datum)
    if abs(datum["n"]) >= 2**31 or again.getvalue() != value[5:]:
        return None
    return dict(datum)


@settings(max_examples=4, derandomize=True, database=None, phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_the_verdict_is_the_one_that_is_explained(catalogue: ResolvedSchemas, seed: int) -> None:
    """No record makes the stage fail; each is an event, with the time that it states, or a dead
    letter; and nothing that is corrupt is taken for an event."""
    random = Random(seed)
    seen: Counter[str] = Counter()
    for each in judged(catalogue, [damaged(random) for _ in range(RECORDS)]):
        seen[each.reason or "event"] += 1
        # Of events without key the key groups tell.
        is_event = each.fault in (Fault.NONE, Fault.MISSING_KEY)
        assert is_event == (each.reason is None), each
        assert each.reason is None or each.reason in OF_RECORDS
        if schema_id(each.value) not in SCHEMAS:
            assert each.reason in (Reason.NOT_FRAMED, Reason.UNKNOWN_SCHEMA_ID), each
            continue
        refused = each.fault in (Fault.UNDECODABLE, Fault.BAD_VALUE, Fault.TOO_DEEP)
        if schema_id(each.value) == NESTED:
            # These are not decoded again; they are only to end well.
            continue
        fault = decoding_fault(each.value[5:], SCHEMAS[FLAT], READER)
        if fault is not None:
            assert refused, (each, fault)
            assert each.reason == fault[0], (each, fault)
        elif refused:
            assert as_written(each.value) is None, each
        elif each.fault is Fault.NONE and (datum := as_written(each.value)) is not None:
            assert each.time == datum["ts"], each
    assert {"event", "undecodable", "value_out_of_range"} < seen.keys(), seen
