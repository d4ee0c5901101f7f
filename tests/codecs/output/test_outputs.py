"""Output records: what is written is what the public schemas read."""

from __future__ import annotations

import io
import json
import pickle
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from spark_cep.codecs.output.avro_results import AvroResults
from spark_cep.codecs.output.dead_letters import REASONS
from spark_cep.codecs.output.fields import Contract
from spark_cep.codecs.output.outputs import OutputEncoder, OutputTopics
from spark_cep.codecs.output.schemas import schema_text
from spark_cep.errors import OutputError
from spark_cep.match_ids import row_id
from spark_cep.model import Coordinates, DeadLetter, LateEvent, Match, MatchRow, TakenEvent, Timeout


def noon() -> int:
    """A clock that stands still."""
    return 1_700_000_000_000


ENCODER = OutputEncoder(
    OutputTopics("matches", "timeouts", "late", "dead", "shadow", "rows"),
    AvroResults(1, 2, 3, 4),
    noon,
)
STEPS = {
    "b": [TakenEvent(Coordinates("in", 0, 5), 1_000, {"price": Decimal("1.50"), "n": 2}, b"\x00x")],
    "a": [
        TakenEvent(Coordinates("in", 0, 6), 2_000),
        TakenEvent(Coordinates("in", 1, 9), 3_000, type="shop.Order"),
    ],
}
MATCH = Match("ab" * 16, "rule", 2, "kéy", 1_000, 3_000, STEPS, {"total": 3.5, "ids": [1, None]})
AT = Coordinates("in", 3, 41)
ROW = MatchRow(
    rule_id="rule",
    rule_version=2,
    key="kéy",
    match_id="ab" * 16,
    row=3,
    variable="UP",
    event=TakenEvent(AT, 2_000, type="shop.Order"),
    columns={"total": Decimal("1.50"), "ids": [1, None]},
)
UNMATCHED = replace(ROW, key=None, match_id=None, row=1, variable=None)


def decode(contract: Contract, value: bytes | None) -> dict[str, Any]:
    """An output record's value as its public schema reads it."""
    assert value is not None
    schema = fastavro.parse_schema(json.loads(schema_text(contract)))
    found = fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)
    assert isinstance(found, dict)
    return found


def moment(ms: int) -> datetime:
    """An event time as fastavro gives it."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def test_match_round_trip() -> None:
    """A match arrives whole: steps in order, events with coordinates, columns and bytes."""
    record = ENCODER.match(MATCH)
    assert (record.topic, record.key) == ("matches", "kéy".encode())
    assert record.value is not None
    assert record.value[:5] == b"\x00\x00\x00\x00\x01"
    found = decode("match", record.value)
    assert found["time"] == moment(3_000)
    assert found["emitted_at"] == moment(noon())
    assert found["measures"] == {"total": 3.5, "ids": [1, None]}
    assert [step["step"] for step in found["steps"]] == ["b", "a"]
    assert found["steps"][0]["events"] == [
        {
            "topic": "in",
            "partition": 0,
            "offset": 5,
            "time": moment(1_000),
            "type": None,
            "columns": {"price": "1.50", "n": 2},
            "payload": b"\x00x",
        }
    ]
    assert [event["type"] for event in found["steps"][1]["events"]] == [None, "shop.Order"]


def test_match_headers() -> None:
    """Rule, version, match id and kind can be read without decoding."""
    assert ENCODER.match(MATCH).headers == [
        ("spark-cep-kind", b"match"),
        ("spark-cep-rule-id", b"rule"),
        ("spark-cep-rule-version", b"2"),
        ("spark-cep-match-id", b"ab" * 16),
    ]


def test_timeout_round_trip() -> None:
    """A timeout tells its deadline and whether it had matched; without key, no Kafka key."""
    timeout = Timeout("cd" * 16, "rule", 2, None, -5, 10, True, STEPS)
    record = ENCODER.timeout(timeout)
    found = decode("timeout", record.value)
    assert (record.topic, record.key) == ("timeouts", None)
    assert (found["start"], found["deadline"]) == (moment(-5), moment(10))
    assert found["already_matched"] is True
    assert found["measures"] == {}


def test_row_round_trip() -> None:
    """A row of a match arrives whole: its match, its place in it, its event, its columns."""
    record = ENCODER.row(ROW)
    assert (record.topic, record.key) == ("rows", "kéy".encode())
    assert decode("match-row", record.value) == {
        "row_id": row_id(ROW),
        "match_id": "ab" * 16,
        "row": 3,
        "variable": "UP",
        "rule_id": "rule",
        "rule_version": 2,
        "key": "kéy",
        "topic": "in",
        "partition": 3,
        "offset": 41,
        "time": moment(2_000),
        "type": "shop.Order",
        "emitted_at": moment(noon()),
        "columns": {"total": "1.50", "ids": [1, None]},
    }
    assert record.headers == [
        ("spark-cep-kind", b"match-row"),
        ("spark-cep-rule-id", b"rule"),
        ("spark-cep-rule-version", b"2"),
        ("spark-cep-match-id", b"ab" * 16),
    ]


def test_row_that_no_match_covers() -> None:
    """It has neither match nor variable, and no header with a match id."""
    record = ENCODER.row(UNMATCHED)
    found = decode("match-row", record.value)
    assert (found["match_id"], found["variable"]) == (None, None)
    assert (record.key, found["key"], found["row"]) == (None, None, 1)
    assert [name for name, _ in record.headers] == [
        "spark-cep-kind",
        "spark-cep-rule-id",
        "spark-cep-rule-version",
    ]


def test_bytes_of_a_row() -> None:
    """Consumers read the bytes by the schema that they know: they do not change."""
    value = ENCODER.row(UNMATCHED).value
    assert value is not None
    assert value.hex() == (
        "00000000044063346266376461316531363434343266383332376638373934643964666333620002"
        "000872756c65040004696e0652a01f021473686f702e4f7264657280a0abfef962040a746f74616c"
        "0808312e3530066964730c040402000000"
    )


def test_a_row_of_a_shadow_rule() -> None:
    """It goes to the shadow topic, otherwise as it is."""
    assert ENCODER.row(ROW, shadow=True) == ENCODER.row(ROW)._replace(topic="shadow")


def test_late_event_is_unchanged() -> None:
    """Key, value and headers of a late event stay; ours come behind."""
    late = LateEvent(AT, 100, 200, b"k", b"\x00v", (("trace", b"1"), ("empty", None)))
    record = ENCODER.late(late)
    assert (record.topic, record.key, record.value) == ("late", b"k", b"\x00v")
    assert record.headers == [
        ("trace", b"1"),
        ("empty", None),
        ("spark-cep-kind", b"late"),
        ("spark-cep-topic", b"in"),
        ("spark-cep-partition", b"3"),
        ("spark-cep-offset", b"41"),
        ("spark-cep-event-time", b"100"),
        ("spark-cep-watermark", b"200"),
    ]


def test_dead_letter_round_trip() -> None:
    """A dead letter holds coordinates, reason and the original bytes."""
    letter = DeadLetter(AT, "undecodable", "ends early", b"k", b"\x00\x01", "rule", "a")
    record = ENCODER.dead_letter(letter)
    assert (record.topic, record.key) == ("dead", b"k")
    assert ("spark-cep-reason", b"undecodable") in record.headers
    assert ("spark-cep-rule-id", b"rule") in record.headers
    assert decode("dead-letter", record.value) == {
        "topic": "in",
        "partition": 3,
        "offset": 41,
        "reason": "undecodable",
        "detail": "ends early",
        "rule_id": "rule",
        "step": "a",
        "record_key": b"k",
        "record_value": b"\x00\x01",
        "failed_at": moment(noon()),
    }


def small(largest: int) -> OutputEncoder:
    """An encoder of topics that take no more than this."""
    topics = OutputTopics("matches", "timeouts", "late", "dead", "shadow", "rows")
    return OutputEncoder(topics, AvroResults(1, 2, 3, 4), noon, largest)


def test_a_dead_letter_that_is_too_large_leaves_out_its_record() -> None:
    """The value goes first, then a large key; reason and coordinates stay, and what is missing is
    said."""
    encoder = small(2_000)
    letter = DeadLetter(AT, "undecodable", "ends early", b"k" * 100, b"v" * 5_000)
    record = encoder.dead_letter(letter)
    assert record.size <= 2_000
    found = decode("dead-letter", record.value)
    assert (found["offset"], found["reason"], found["record_value"]) == (41, "undecodable", None)
    assert found["record_key"] == record.key == b"k" * 100
    missing = "(left out, too large for this topic: the value, 5000 bytes)"
    assert found["detail"] == f"ends early {missing}"
    record = encoder.dead_letter(replace(letter, record_key=b"k" * 3_000))
    assert record.size <= 2_000
    found = decode("dead-letter", record.value)
    assert (found["record_key"], record.key) == (None, None)
    assert found["detail"].endswith("the value, 5000 bytes; the key, 3000 bytes)")


def test_what_is_too_large_is_a_dead_letter() -> None:
    """A match or timeout names its rule and its last event, a late event its own record."""
    encoder = small(1_000)
    assert not encoder.is_dead_letter(encoder.match(MATCH))
    steps = {"a": [TakenEvent(Coordinates("in", 0, 9), 9), TakenEvent(AT, 7, None, b"x" * 900)]}
    record = encoder.match(replace(MATCH, steps=steps))
    assert encoder.is_dead_letter(record)
    found = decode("dead-letter", record.value)
    assert (found["reason"], found["rule_id"]) == ("output_too_large", "rule")
    assert (found["topic"], found["partition"], found["offset"]) == ("in", 0, 9)
    assert MATCH.match_id in found["detail"]
    assert "from in-3@41 on" in found["detail"]
    late = encoder.late(LateEvent(AT, 100, 200, b"k", b"v" * 900))
    assert encoder.is_dead_letter(late)
    found = decode("dead-letter", late.value)
    assert (found["reason"], found["offset"]) == ("output_too_large", 41)
    assert found["record_value"] is None


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (ROW, f"row 3 of the match {'ab' * 16}, of the event in-3@41, has "),
        (UNMATCHED, "the row that no match covers, of the event in-3@41, has "),
    ],
    ids=["of a match", "unmatched"],
)
@pytest.mark.parametrize("shadow", [False, True])
def test_a_row_that_is_too_large_is_a_dead_letter(row: MatchRow, told: str, shadow: bool) -> None:
    """It names rule, match and event; a shadow rule's does, too."""
    encoder = small(1_000)
    assert not encoder.is_dead_letter(encoder.row(row, shadow=shadow))
    record = encoder.row(replace(row, columns={"text": "x" * 900}), shadow=shadow)
    assert encoder.is_dead_letter(record)
    found = decode("dead-letter", record.value)
    assert (found["reason"], found["rule_id"]) == ("output_too_large", "rule")
    assert (found["topic"], found["partition"], found["offset"]) == ("in", 3, 41)
    assert found["detail"].startswith(told)
    assert found["detail"].endswith(" bytes, and its topic takes 1000")


def test_encoder_can_be_pickled() -> None:
    """A worker gets the encoder pickled and writes the same bytes."""
    assert pickle.loads(pickle.dumps(ENCODER)).match(MATCH) == ENCODER.match(MATCH)


def test_value_outside_the_schema() -> None:
    """What the schema cannot hold is an OutputError that names the record."""
    with pytest.raises(OutputError, match="dead letter of in-3@41"):
        ENCODER.dead_letter(DeadLetter(AT, "x", 5))  # type: ignore[arg-type]


def documented(node: Any) -> bool:
    """Whether every record and field below has a doc."""
    if isinstance(node, list):
        return all(documented(item) for item in node)
    if not isinstance(node, dict):
        return True
    if node.get("type") == "record":
        return bool(node.get("doc")) and all(
            field.get("doc") and documented(field["type"]) for field in node["fields"]
        )
    return all(documented(value) for value in node.values())


@pytest.mark.parametrize("contract", ["match", "match-row", "timeout", "dead-letter"])
def test_contracts_are_documented(contract: Contract) -> None:
    """Every field of the public schemas says what it is."""
    assert documented(json.loads(schema_text(contract)))


def test_reasons_are_documented() -> None:
    """The dead letter's schema lists the reasons that there are."""
    fields = {field["name"]: field for field in json.loads(schema_text("dead-letter"))["fields"]}
    listed = fields["reason"]["doc"].partition(": ")[2].rstrip(".").split(", ")
    assert set(listed) == REASONS
