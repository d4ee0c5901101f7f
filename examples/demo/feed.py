"""The stream into Kafka: encoding, and when each wave begins.

A wave begins when the job has read all that was produced before, or after a while without it. Its
records are produced one by one, each acknowledged before the next: what arrives out of order does
so because the stream says so.
"""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema as RegisteredSchema
from confluent_kafka.schema_registry import SchemaRegistryClient

from examples.demo.interruption import Interruption
from examples.demo.metrics import Progress
from examples.demo.stream import LOGIN_3, UNKNOWN_SCHEMA_ID, Damage, Item, Schema, Wave
from spark_cep.codecs.registry.framing import frame
from spark_cep.errors import StartError

SCHEMAS = Path(__file__).parent / "schemas"
_ADDED = Path(__file__).parent / "rules"
_WAVE_SECONDS = 2.0
_AT_ONCE = 0.3
_PAUSE_SECONDS = 1.0
_PATIENCE_SECONDS = 40.0
_FLUSH_SECONDS = 0.2
_WRONG_CLOCK = 4_070_908_800_000  # 2099
_RANDOM_BODY = bytes.fromhex("f3a19c07b85de4f6ffffff7f3bd2e8910c")


class Encoder:
    """Items to the bytes of a record's value, with schemas registered as they are needed."""

    def __init__(self, registry_url: str) -> None:
        self._client = SchemaRegistryClient({"url": registry_url, "max.retries": 2})
        self._ids: dict[Schema, int] = {}
        self._parsed: dict[Schema, Any] = {}

    def register(self, schema: Schema) -> int:
        """The id of a writer schema."""
        text = (SCHEMAS / f"{schema.name}.avsc").read_text("utf-8")
        subject = f"{schema.topic}-value"
        found = self._client.register_schema(subject, RegisteredSchema(text, "AVRO"))
        self._ids[schema] = found
        self._parsed[schema] = fastavro.parse_schema(json.loads(text))
        return found

    def value(self, item: Item) -> bytes | None:
        """The record's value, damaged as the item says."""
        if item.fields is None:
            return None
        schema_id = self._ids[item.schema]
        if item.damage is Damage.PLAIN_JSON:
            return json.dumps(item.fields, default=str).encode()
        if item.damage is Damage.RANDOM_BYTES:
            return frame(schema_id, _RANDOM_BODY)
        body = encode_body(item, self._parsed[item.schema])
        if item.damage is Damage.CUT_SHORT:
            return frame(schema_id, body[: len(body) // 2])
        if item.damage is Damage.UNKNOWN_SCHEMA:
            return frame(UNKNOWN_SCHEMA_ID, body)
        return frame(schema_id, body)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def encode_body(item: Item, schema: Any) -> bytes:
    """An item's event in Avro, without the framing."""
    time_ms = _WRONG_CLOCK if item.damage is Damage.WRONG_CLOCK else item.time
    in_micros = item.topic == LOGIN_3.topic
    datum: Any = {**(item.fields or {}), "ts": time_ms * 1000 if in_micros else time_ms}
    if item.type is not None:
        datum = (item.type, datum)
    body = BytesIO()
    fastavro.schemaless_writer(body, schema, datum)
    return body.getvalue()


class Feed:
    """Produces the waves, a few records at each :meth:`tick`. ``rules``: the job's folder, for
    rules that are added."""

    def __init__(
        self,
        waves: Sequence[Wave],
        producer: Producer,
        encoder: Encoder,
        topics: Sequence[str],
        interruption: Interruption,
        rules: Path,
    ) -> None:
        self._rules = rules
        self.sent: Counter[str] = Counter(dict.fromkeys(topics, 0))
        self._waves = waves
        self._producer = producer
        self._encoder = encoder
        self._interruption = interruption
        self._number = 0
        self._position = 0
        self._began: float | None = None
        self._ended = time.monotonic() - _PAUSE_SECONDS

    @property
    def done(self) -> bool:
        """Whether everything was produced."""
        return self._number == len(self._waves)

    @property
    def wave(self) -> str:
        """Where it stands: ``3/6``."""
        running = self._began is not None
        return f"{self._number + running}/{len(self._waves)}"

    def tick(self, progress: Progress) -> list[str]:
        """Produce what is due; what there is to say about it."""
        if self.done:
            return []
        wave, now, said = self._waves[self._number], time.monotonic(), []
        if self._began is None:
            waited = now - self._ended
            if waited < _PAUSE_SECONDS:
                return []
            if not self._caught_up(wave, progress):
                if waited < _PATIENCE_SECONDS:
                    return []
                said.append(f"the job has not caught up after {waited:.0f} s; going on")
            if wave.adds is not None and not self._added(wave.adds, progress, said):
                return said
            for schema in wave.registers:
                number = self._encoder.register(schema)
                said.append(f"registered {schema.name} for {schema.topic}, id {number}")
            self._began = now
            said.append(f"wave {self.wave}, {len(wave.items)} records: {wave.title}")
        share = (now - self._began) / _WAVE_SECONDS
        due = min(len(wave.items), 1 + int((_AT_ONCE + share) * len(wave.items)))
        for item in wave.items[self._position : due]:
            self._send(item)
        self._position = due
        if due == len(wave.items):
            self._number, self._position = self._number + 1, 0
            self._began, self._ended = None, now
        return said

    def _added(self, rule: str, progress: Progress, said: list[str]) -> bool:
        """Whether the job runs a rule by now; it is put into the job's folder first."""
        file = self._rules / f"{rule}.yaml"
        if not file.exists():
            shutil.copy(_ADDED / file.name, file)
            said.append(f"rule {rule} is put into {file.parent}, while the job runs")
        if rule not in progress.rules:
            return False
        said.append(f"rule {rule} is active, from batch {progress.rules[rule]} on")
        return True

    def _caught_up(self, wave: Wave, progress: Progress) -> bool:
        if progress.read.total() < self.sent.total():
            return False
        needed = wave.waits_for
        return needed is None or (progress.watermark is not None and progress.watermark >= needed)

    def _send(self, item: Item) -> None:
        failures: list[str] = []

        def delivered(error: object, _message: object) -> None:
            if error is not None:
                failures.append(str(error))

        self._producer.produce(
            item.topic, self._encoder.value(item), key=item.key, on_delivery=delivered
        )
        while self._producer.flush(_FLUSH_SECONDS):
            self._interruption.check()
        if failures:
            raise StartError(f"the broker does not take a record for {item.topic}: {failures[0]}")
        self.sent[item.topic] += 1


def producer_settings(bootstrap: str) -> dict[str, str | int]:
    """A key goes to the same partition in every run, so results have the same ids."""
    return {
        "bootstrap.servers": bootstrap,
        "partitioner": "consistent",
        "linger.ms": 0,
        "acks": "all",
        "message.timeout.ms": 10_000,
        "log_level": 0,  # a broker that stops is no news
    }
