"""Mutated schemas: each is read, with the values that fastavro reads, or refused, with a sentence;
and no bytes under its id end anything.

``python -m tests.hostile.schemas`` is the long run, ``test_schemas.py`` a short one.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random
from typing import Annotated, Any, NamedTuple

import typer

from spark_cep.codecs.avro.broken_records import decoding_fault, endless
from spark_cep.codecs.avro.reader_schemas import record_names, record_schema
from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.avro.schema_nodes import Node
from spark_cep.codecs.output.dead_letters import LONGEST_DETAIL
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.framing import frame
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.errors import SchemaError
from spark_cep.event_times import KAFKA_TIMESTAMP
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions
from tests.codecs.registry.test_resolved_schemas import FakeRegistry
from tests.pipeline.decode import schemas as known
from tests.pipeline.decode.mutated_schemas import NoValueError, mutated, mutated_event, some_body
from tests.pipeline.decode.reference import Kafka, Setting, decoded, expected
from tests.pipeline.decode.test_decoder import damaged, is_as_written, needed, planned, rule

BODIES, WRITERS_OF_A_READER = 4, 6
_REFUSED = (Fault.UNDECODABLE, Fault.BAD_VALUE, Fault.TOO_DEEP)


class Found(NamedTuple):
    """How many schemas and records were what, and sentences about what is wrong."""

    counts: Counter[str]
    wrong: list[str]

    def add(self, more: Found, what: str = "") -> None:
        """Append another's, each sentence behind ``what``."""
        self.counts.update(more.counts)
        self.wrong.extend(f"{what}{each}" for each in more.wrong)


class _Body(NamedTuple):
    schema: int
    body: bytes
    sound: bool


def check_writers(count: int, seed: int) -> Found:
    """So many mutated writers of one reader."""
    random = Random(seed)
    writers = {number: mutated_event(random) for number in range(1, count + 1)}
    return _checked(random, known.reader(), writers)


def check_readers(count: int, seed: int) -> Found:
    """So many mutated readers, each with several writers."""
    random = Random(seed)
    found = Found(Counter(), [])
    for number in range(count):
        writers = {
            n: known.writer(random, random.random()) for n in range(1, WRITERS_OF_A_READER + 1)
        }
        try:
            reader = parse(json.dumps(mutated(random, known.reader().json)), f"reader {number}")
            event_type = _event_type(_one_record(reader))
            # What a start asks for.
            assert event_type.columns
        except SchemaError as error:
            found.counts["readers refused"] += 1
            # It goes to a terminal, and not into dead letters.
            found.wrong.extend(_bad_sentence(str(error)[:LONGEST_DETAIL]))
            continue
        found.counts["readers"] += 1
        found.add(_checked(random, event_type.reader, writers), f"reader {number}: ")
    return found


def _one_record(schema: AvroSchema) -> AvroSchema:
    return record_schema(schema, next(iter(record_names(schema))))


def _event_type(reader: AvroSchema) -> EventType:
    return EventType(0, "i", "t.Event", reader, ("t",), KAFKA_TIMESTAMP, "auto")


def _checked(random: Random, reader: AvroSchema, writers: Mapping[int, Any]) -> Found:
    """Have the writers' records read by the decoder, sound ones and damaged ones."""
    event_type = _event_type(reader)
    schemas = ResolvedSchemas((event_type,))
    schemas.ask(FakeRegistry(dict(writers)), writers)
    found = Found(Counter(), [])
    found.counts.update({"writers read": len(schemas.writers)})
    found.counts.update({"writers refused": len(schemas.unreadable)})
    for told in schemas.unreadable.values():
        found.wrong.extend(_bad_sentence(told))
    bodies = [*_bodies(random, schemas)]
    columns = {"events": [*_comparable(event_type.readable)]}
    plan = planned([rule("all", "true", "true", emit=columns)])
    setting = Setting(plan, schemas, DecodeOptions(4, None, keep_all=True))
    records = [
        Kafka("t", 0, number, known.NOW_MS, None, frame(each.schema, each.body))
        for number, each in enumerate(bodies)
    ]
    made = decoded(setting, records)
    for record, body in zip(records, bodies, strict=True):
        what, wrong = _judged(setting, record, body, made.get(record.offset))
        found.counts[what] += 1
        if wrong:
            found.wrong.append(f"{wrong}: {body}, written with {writers[body.schema]}")
    return found


def _bodies(random: Random, schemas: ResolvedSchemas) -> Iterator[_Body]:
    for schema_id, (writer, *_) in schemas.writers.items():
        assert isinstance(schema_id, int)
        for _ in range(BODIES):
            try:
                body = some_body(random, writer.schema)
            except NoValueError:
                break
            yield _Body(schema_id, body, sound=True)
            whole = damaged(random, frame(schema_id, body))
            yield _Body(schema_id, whole[5:], sound=False)
    for schema_id in schemas.unreadable:
        assert isinstance(schema_id, int)
        yield _Body(schema_id, random.randbytes(20), sound=False)


def _judged(
    setting: Setting, record: Kafka, body: _Body, row: dict[str, Any] | None
) -> tuple[str, str]:
    """The kind of record that this is, and what is wrong with its row, or nothing."""
    fault = None if row is None else Fault(row["fault"])
    schemas = setting.catalogue
    if body.schema in schemas.unreadable:
        return "of writers refused", "" if fault is Fault.UNREADABLE_SCHEMA else f"{fault}"
    writer, reader = schemas.writers[body.schema][0], needed(setting, schemas.types[0])
    if fault in _REFUSED:
        told = decoding_fault(body.body, writer.schema, reader)
        wrong = body.sound and writer.branch is None and told is None
        return "refused", f"{fault}, and nothing is wrong" if wrong else ""
    if body.sound:
        what = "read" if row else "of other records"
        try:
            wanted = expected(setting, [record]).get(record.offset)
        except Exception as error:  # noqa: BLE001  of fastavro, or the reference
            return what, f"the decoder has {row}, fastavro {error!r}"
        return what, _differences(row, wanted)
    if (
        writer.branch is not None
        or row is None
        or endless(writer.schema)
        or not is_as_written(record.value or b"", writer.schema)
    ):
        return "damaged, not judged", ""
    told = decoding_fault(body.body, writer.schema, reader)
    return "damaged, read", "" if told is None else f"read, and {told}"


def _differences(row: dict[str, Any] | None, wanted: dict[str, Any] | None) -> str:
    """The columns in which two rows differ, as text, so that NaN is itself."""
    if row is None or wanted is None:
        return "" if row is wanted else f"the decoder has {row}, the reference {wanted}"
    names = sorted(row.keys() | wanted.keys())
    pairs = {name: (repr(row.get(name)), repr(wanted.get(name))) for name in names}
    unlike = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    return f"the decoder and the reference differ in {unlike}" if unlike else ""


def _comparable(reader: AvroSchema) -> Iterator[str]:
    """Columns whose values the reference tells apart: it knows no other unions of several types
    than those of the reader that all others come from."""
    ours = {field["name"]: field["type"] for field in _fields(known.reader())}
    for field in _fields(reader):
        name, of = field["name"], field["type"]
        if ours.get(name) == of or _is_plain(reader, of, ()):
            yield name


def _fields(reader: AvroSchema) -> list[dict[str, Any]]:
    record = reader.resolve(reader.root)
    assert isinstance(record, dict)
    fields: list[dict[str, Any]] = record["fields"]
    return fields


def _is_plain(reader: AvroSchema, node: Node, above: tuple[str, ...]) -> bool:
    node = reader.resolve(node)
    if isinstance(node, list):
        others = [branch for branch in node if branch != "null"]
        return len(others) == 1 and _is_plain(reader, others[0], above)
    if not isinstance(node, dict):
        return node != "null"
    if "name" in node and node["name"] in above:
        return False
    inside = [field["type"] for field in node.get("fields", ())]
    inside += [node[key] for key in ("items", "values") if key in node]
    above = (*above, node.get("name", ""))
    return all(_is_plain(reader, each, above) for each in inside)


def _bad_sentence(told: str) -> list[str]:
    """A complaint about an error's words."""
    if told.isprintable() and 0 < len(told) <= LONGEST_DETAIL + 1:
        return []
    return [f"not a sentence: {told!r}"]


def main(
    schemas: Annotated[int, typer.Option(help="Mutated schemas.", min=10)] = 1_000,
    seed: Annotated[int, typer.Option(help="Of everything random; 0: from the clock.")] = 0,
) -> None:
    """Read records of mutated writers, and of good writers with mutated readers."""
    seed = seed or time.time_ns() % 10**6
    began = time.monotonic()
    found = check_writers(schemas - schemas // 5, seed)
    found.add(check_readers(schemas // 5, seed))
    typer.echo(f"seed {seed}, {time.monotonic() - began:.0f} s: {dict(found.counts)}")
    for each in found.wrong:
        typer.echo(f"wrong: {each}")
    typer.echo(f"wrong: {len(found.wrong)}")
    sys.exit(bool(found.wrong))


if __name__ == "__main__":
    typer.run(main)
