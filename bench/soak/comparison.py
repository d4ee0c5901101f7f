"""What the job has written, held against a run of the batch runner over the same events.

It runs over the users in shards, one after the other, over records that are made again; what
is kept of an output is its id and a digest.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from zlib import crc32

import fastavro

from bench.outputs import committed_messages
from bench.soak.stream import ALLOWED_DISORDER_MS, INPUT, SCHEMA, Fate, Stream
from spark_cep.codecs.output.fields import Contract
from spark_cep.codecs.output.schemas import schema_text
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.matcher.findings.output_values import output_value
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.model import Match, Timeout
from spark_cep.pattern.types import record_type
from spark_cep.runner.batch import Batch, RunSettings
from spark_cep.runner.runner import Runner
from spark_cep.runner.values import ValueInputs, records_of

#: Kind of output and id, or coordinates for records that are passed on.
Name = tuple[str, str]
_SHARDS = 8
_CUT = 2_000


@dataclass
class Verdict:
    """How outputs differ from what was expected; a few of each are named."""

    expected: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    twice: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    unexpected: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def note(self, what: str, name: Name, times: int = 1) -> None:
        """Count one difference."""
        getattr(self, what)[name[0]] += times
        some = self.examples.setdefault(what, [])
        if len(some) < 5:
            some.append(" ".join(name))

    @property
    def clean(self) -> bool:
        """Whether there is no difference at all."""
        return not (self.lost or self.twice or self.wrong or self.unexpected)


def expected(stream: Stream, plan: RuleSetPlan) -> Iterator[tuple[Name, bytes]]:
    """Every output record that there must be once, with its digest."""
    for planned in stream.records(0, stream.count):
        where = f"{planned.at.partition}@{planned.at.offset}"
        if planned.fate is Fate.LATE:
            yield ("late", where), b""
        elif planned.fate is not Fate.EVENT:
            yield ("dead_letter", where), _digest(planned.fate.value)
    types = RecordTypes(((INPUT, SCHEMA["name"], record_type(json.dumps(SCHEMA))),))
    for shard in range(_SHARDS):
        inputs = ValueInputs(types)
        event = inputs.number(INPUT, SCHEMA["name"])
        runner = Runner(plan, inputs, RunSettings(key_groups=1))
        for start in range(0, stream.count, _CUT):
            end = min(start + _CUT, stream.count)
            records = [
                planned.record(event)
                for planned in stream.records(start, end)
                if planned.fate is Fate.EVENT
                and crc32(planned.event["user"].encode()) % _SHARDS == shard
            ]
            # No later record is older than this, but for the late ones.
            watermark = stream.due_ms(end) - ALLOWED_DISORDER_MS
            found = runner.apply(Batch(records_of(records), watermark=watermark))
            yield from _names(found.outputs)
            assert not found.late
        last = runner.apply(Batch(watermark=stream.end_ms - ALLOWED_DISORDER_MS - 1))
        yield from _names(last.outputs)


def _names(outputs: Outputs) -> Iterator[tuple[Name, bytes]]:
    both: list[Match | Timeout] = [*outputs.matches, *outputs.timeouts]
    for found in both:
        yield _name(found), digest_of(found)


def digest_of(found: Match | Timeout) -> bytes:
    """What a match or timeout says beside its id."""
    return _digest(
        found.rule_id,
        found.key,
        found.time if isinstance(found, Match) else found.deadline,
        sorted((name, output_value(value)) for name, value in found.measures.items()),
    )


def digest_of_body(kind: str, body: dict[str, Any]) -> bytes:
    """The same of a record's body; ``kind``: ``match`` or ``timeout``."""
    at = body["time" if kind == "match" else "deadline"]
    return _digest(
        body["rule_id"],
        body["key"],
        at if isinstance(at, int) else round(at.timestamp() * 1000),
        sorted(body["measures"].items()),
    )


def _name(found: Match | Timeout) -> Name:
    return ("match" if isinstance(found, Match) else "timeout", found.match_id)


def _digest(*content: Any) -> bytes:
    return blake2b(repr(content).encode(), digest_size=8).digest()


def written(bootstrap: str, topics: dict[str, str]) -> Iterator[tuple[Name, bytes]]:
    """Every committed output record; ``topics``: by kind of output."""
    readers = {
        "match": reader("match"),
        "timeout": reader("timeout"),
        "dead_letter": reader("dead-letter"),
    }
    for kind, topic in topics.items():
        for message in committed_messages(bootstrap, topic):
            headers = dict(message.headers() or [])
            if kind == "late":
                partition, offset = (
                    int(headers[f"spark-cep-{name}"] or b"") for name in ("partition", "offset")
                )
                yield ("late", f"{partition}@{offset}"), b""
                continue
            body = readers[kind](message.value())
            if kind == "dead_letter":
                where = f"{body['partition']}@{body['offset']}"
                yield ("dead_letter", where), _digest(body["reason"])
                continue
            yield (kind, body["match_id"]), digest_of_body(kind, body)


def reader(contract: Contract) -> Any:
    """What makes a record's body of its value."""
    schema = fastavro.parse_schema(json.loads(schema_text(contract)))
    return lambda value: fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)


def compare(wanted: Iterable[tuple[Name, bytes]], found: Iterable[tuple[Name, bytes]]) -> Verdict:
    """What is lost, there more than once, different, or not expected at all."""
    verdict = Verdict()
    open_names: dict[Name, bytes] = {}
    for name, digest in wanted:
        assert name not in open_names, name
        open_names[name] = digest
        verdict.expected[name[0]] += 1
    seen: set[Name] = set()
    for name, digest in found:
        verdict.written[name[0]] += 1
        if name in seen:
            verdict.note("twice", name)
            continue
        if name not in open_names:
            verdict.note("unexpected", name)
            continue
        seen.add(name)
        if open_names[name] != digest:
            verdict.note("wrong", name)
    for name in open_names.keys() - seen:
        verdict.note("lost", name)
    return verdict
