"""Columns out of JSON are those that Python reads, whatever the records are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

import numpy as np
import pytest

from spark_cep.codecs.avro.reader_schemas import project
from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.json.text_layout import TextLayout, text_layout
from spark_cep.codecs.json.values import Members, MisfitError, parsed, value_of
from spark_cep.codecs.record_faults import Fault
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.representation import Representation, from_whole, representation
from spark_cep.columns.vectors import LENGTH_BITS, LENGTH_MASK, Bytes
from spark_cep.pattern.types import FLOAT, SqlType, column_type, record_type
from tests.e2e.schemas import field, record


def decimal(precision: int, scale: int) -> dict[str, Any]:
    """A decimal."""
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


KIND = {"type": "enum", "name": "Kind", "symbols": ["a", "bb", "c"]}
INNER = record("t.Inner", x=field("int", default=3), y=field(["null", "string"], default=None))
LINE = record("t.Line", sku="string", n=field("int", default=1))
SCHEMA = record(
    "t.Event",
    text=field(["null", "string"], default=None),
    needed="string",
    small="int",
    large=field("long", default=-7),
    ratio=field(["null", "double"], default=None),
    single=field(["null", "float"], default=None),
    flag=field(["null", "boolean"], default=None),
    kind=field(["null", KIND], default=None),
    day=field(["null", {"type": "int", "logicalType": "date"}], default=None),
    at=field(["null", {"type": "long", "logicalType": "timestamp-millis"}], default=None),
    fine=field(["null", {"type": "long", "logicalType": "timestamp-micros"}], default=None),
    local=field(["null", {"type": "long", "logicalType": "local-timestamp-micros"}], default=None),
    price=field(["null", decimal(9, 2)], default=None),
    wide=field(["null", decimal(30, 4)], default=None),
    raw=field(["null", "bytes"], default=None),
    tags=field({"type": "array", "items": ["null", "string"]}, default=[]),
    counts=field(["null", {"type": "map", "values": "long"}], default=None),
    inner=field(["null", INNER], default=None),
    lines=field({"type": "array", "items": LINE}, default=[]),
    either=field(["null", "string", "long", {"type": "array", "items": "int"}], default=None),
    note=field("string", default="none ü"),
)  # fmt: skip

PATHS: list[tuple[str, ...]] = [
    *((each["name"],) for each in SCHEMA["fields"]),
    ("inner", "x"), ("inner", "y"), ("either", "member0"), ("either", "member1"),
]  # fmt: skip


def read(
    values: Iterable[bytes | None], paths: list[tuple[str, ...]]
) -> tuple[list[Any], list[int]]:
    """By record its columns (a record without them has a fault), and the faults."""
    types = record_type(json.dumps(SCHEMA))
    vectors = ColumnVectors()
    wanted: dict[tuple[str, ...], tuple[int, SqlType]] = {}
    for path in paths:
        of = column_type(types, path)
        assert of is not None
        wanted[path] = vectors.value(path, of), of
    layout: TextLayout = text_layout(needed(paths), wanted, vectors)
    found = layout.read(Bytes.of(list(values)), 4)
    rows: list[dict[tuple[str, ...], Any] | None] = []
    for row, fault in enumerate(found.faults.tolist()):
        assert found.types[row] == (-1 if fault == Fault.TOMBSTONE else 4)
        if fault:
            rows.append(None)
            continue
        rows.append({path: column(found, row, *to, vectors) for path, to in wanted.items()})
    return rows, found.faults.tolist()


def column(found: Any, row: int, vector: int, of: SqlType, vectors: ColumnVectors) -> Any:
    """One value as Python has it."""
    if found.nulls[row, vector]:
        return None
    whole = int(found.wholes[row, vector])
    start = whole >> LENGTH_BITS
    data = found.data[start : start + (whole & LENGTH_MASK)].tobytes()
    match representation(of):
        case Representation.TEXT:
            return data.decode()
        case Representation.DOUBLE:
            return float(found.doubles[row, vector])
        case Representation.WHOLE:
            return from_whole(of)(whole)
    reader = int(found.wholes[row, vectors.reader(vector)])
    return found.readers[reader](data) if reader >= 0 else found.constants[-1 - reader]


def needed(paths: list[tuple[str, ...]]) -> AvroSchema:
    """The schema of what is wanted."""
    return project(parse(json.dumps(SCHEMA), "event"), [".".join(path) for path in paths])


def expected(value: bytes, paths: list[tuple[str, ...]]) -> Any:
    """The columns that Python reads; ``None`` where it cannot."""
    schema = needed(paths)
    try:
        given = parsed(value.decode("utf-8", "surrogateescape"))
        if not isinstance(given, Members):
            return None
        found = value_of(schema, schema.root, given, "")
    except (MisfitError, ValueError, RecursionError):
        return None
    rows = {}
    for path in paths:
        part = found
        for name in path:
            part = None if part is None else part[name]
        rows[path] = part
    return rows


def an_event(random: Random) -> dict[str, Any]:
    """An event, some of whose fields are of another type."""
    odd: list[Callable[[], Any]] = [
        lambda: None, lambda: random.choice(["", "x", "ü\n", "😀", "12", "NaN"]),
        lambda: random.randrange(-5, 5), lambda: random.choice([2**31, -(2**63), 2**63, 10**25]),
        lambda: random.choice([0.5, -1.25, 1e300, 12345.678901234567, 3.0]),
        lambda: random.random() < 0.5, list, dict, lambda: [1, "a"], lambda: {"x": "1", "z": [{}]},
    ]  # fmt: skip
    right: dict[str, Callable[[], Any]] = {
        "text": lambda: random.choice(["a", "ü", 'q"\\', None]),
        "needed": lambda: random.choice(["k", "ключ", "\u2028"]),
        "small": lambda: random.randrange(-(2**31), 2**31),
        "large": lambda: random.choice([0, 2**63 - 1, -(2**63)]),
        "ratio": lambda: random.choice([0.1, 1e-7, 123456789.123456789, 7, "Infinity", "NaN"[:2]]),
        "single": lambda: random.choice([0.1, 16777217, "-Infinity"]),
        "flag": lambda: random.choice([True, False, None]),
        "kind": lambda: random.choice(["a", "bb", "c", None]),
        "day": lambda: random.choice(["2026-01-31", 20_000, None]),
        "at": lambda: random.choice([1_700_000_000_123, "2026-01-31T12:00:00.1239Z", None]),
        "fine": lambda: random.choice([1_700_000_000_123_456, "2026-01-31 12:00:00+01:00"]),
        "local": lambda: random.choice(["2026-01-31T12:00:00", 5]),
        "price": lambda: random.choice([12.5, 0.01, "1234567.89", -3, 1e2]),
        "wide": lambda: random.choice([12.5, "12345678901234567890.1234", None]),
        "raw": lambda: random.choice(["AAEC", "", None]),
        "tags": lambda: random.choice([[], ["a", None, "ü\t"], ["a"] * 9]),
        "counts": lambda: random.choice([{}, {"a": 1, "ü": -2}, None]),
        "inner": lambda: random.choice([{}, {"x": 5}, {"y": "yes", "more": [1]}, None]),
        "lines": lambda: random.choice([[], [{"sku": "s"}, {"sku": "t", "n": 2, "u": {}}]]),
        "either": lambda: random.choice(["text", 5, [1, 2], None]),
        "note": lambda: random.choice(["n", "\u0001"]),
        "unknown": lambda: random.choice([{"a": [1, {"b": None}]}, [[]], "x", 1e5, True]),
    }
    found = {
        name: (random.choice(odd) if random.random() < 0.01 else make)()
        for name, make in right.items()
        if name in ("needed", "small") or random.random() < 0.8
    }
    if random.random() < 0.02:
        found.pop(random.choice(["needed", "small"]))
    names = list(found)
    random.shuffle(names)
    return {name: found[name] for name in names}


@pytest.mark.parametrize("seed", range(6))
def test_events_and_broken_ones_are_read_as_by_python(seed: int) -> None:
    """All columns or some, in any order; what is broken or of another type is a fault for both."""
    random = Random(seed)
    values = []
    for _ in range(300):
        text = json.dumps(
            an_event(random), ensure_ascii=random.random() < 0.5, indent=random.choice([None, 1])
        )
        data = bytearray(text.encode())
        if random.random() < 0.3:
            for _ in range(random.randrange(1, 3)):
                at = random.randrange(len(data))
                match random.randrange(3):
                    case 0:
                        del data[at]
                    case 1:
                        data[at] = random.choice(b'{}[],:"\\0a-.e \x00\xff\xc3')
                    case 2:
                        data.insert(at, random.choice(b'{}[],:"\\0a-.e \n\xff'))
        values.append(bytes(data))
    paths = PATHS if seed % 2 else random.sample(PATHS, 5)
    found, faults = read(values, paths)
    told = [expected(value, paths) for value in values]
    for value, one, other in zip(values, found, told, strict=True):
        assert same(one, other), (value, one, other)
    assert 20 < sum(one is not None for one in found) < 290
    assert {fault for fault in faults if fault} <= {Fault.UNDECODABLE}


def same(one: Any, other: Any) -> bool:
    """Return whether two records are the same, NaN like itself."""
    return repr(one) == repr(other)


def test_the_last_of_several_fields_of_a_name_counts() -> None:
    """Also where one nests, or is null; a default does not come back."""
    paths = [("text",), ("inner", "x"), ("inner", "y"), ("inner",), ("large",), ("needed",)]
    values = [
        b'{"needed":"k","text":"a","text":"b","inner":{"x":1,"y":"y"},"inner":{"x":2}}',
        b'{"needed":"k","text":"a","text":null,"inner":{"x":1},"inner":null,"large":1,"large":2}',
        b'{"needed":"k","\\u0074ext":"c","large":null}',
        b'{"needed":"k","text":5,"text":"b"}',
    ]
    found, faults = read(values, paths)
    assert found[0] == {
        ("text",): "b", ("inner", "x"): 2, ("inner", "y"): None, ("inner",): {"x": 2, "y": None},
        ("large",): -7, ("needed",): "k",
    }  # fmt: skip
    assert [found[1][path] for path in paths] == [None, None, None, None, 2, "k"]
    assert (found[2]["text",], found[2]["large",]) == ("c", -7)
    assert faults == [0, 0, 0, Fault.UNDECODABLE]
    assert found[3] is None


def test_fields_that_nobody_wants_may_be_anything() -> None:
    """Even no text in UTF-8, as long as all of it is JSON."""
    values = [
        b'{"note": 5, "needed": "k", "other": "\xff\\ud800"}',
        b'{"needed": "k", "x": tru}',
        None,
    ]
    found, faults = read(values, [("needed",)])
    assert found == [{("needed",): "k"}, None, None]
    assert faults == [0, Fault.UNDECODABLE, Fault.TOMBSTONE]


def test_a_prefix_is_passed_over() -> None:
    """That of a registry, whatever its id."""
    event = b'{"needed": "k"}'
    values = [
        b"\0\0\0\0\7" + event,
        b"\0\0\0\0" + event,
        b"\1\0\0\0\7" + event,
        b" " + event + b"\n ",
    ]
    found, faults = read(values, [("needed",)])
    assert [one is not None for one in found] == [True, False, False, True]
    assert faults[1:3] == [Fault.UNDECODABLE] * 2


def test_deep_nesting_and_large_defaults_are_faults() -> None:
    """Of a kind of their own."""
    deep = b'{"needed": "k", "x": ' + b"[" * 300 + b"]" * 300 + b"}"
    _, faults = read([deep], [("needed",)])
    assert faults == [Fault.TOO_DEEP]
    large = record(
        "t.Event",
        lines={"type": "array", "items": record("t.L", a=field("string", default="x" * 10_000))},
    )
    schema = parse(json.dumps(large), "event")
    vectors = ColumnVectors()
    of = record_type(json.dumps(large)).fields["lines"]
    layout = text_layout(schema, {("lines",): (vectors.value(("lines",), of), of)}, vectors)
    many = b'{"lines": [' + b",".join([b"{}"] * 10_000) + b"]}"
    few = b'{"lines": [{}, {}]}'
    found = layout.read(Bytes.of([many, few]), 0)
    assert found.faults.tolist() == [Fault.TOO_LARGE, 0]
    assert found.added > 20_000


def test_names_beyond_columns_by_alias() -> None:
    """A field is found by each of its aliases."""
    given = record("t.Event", user_id=field("string", aliases=["user-id", "@user"]))
    schema = parse(json.dumps(given), "event")
    vectors = ColumnVectors()
    of = record_type(json.dumps(given)).fields["user_id"]
    layout = text_layout(schema, {("user_id",): (vectors.value(("user_id",), of), of)}, vectors)
    values = [b'{"user-id": "a"}', b'{"@user": "b"}', b'{"user_id": "c"}', b'{"user": "d"}']
    found = layout.read(Bytes.of(values), 0)
    assert found.faults.tolist() == [0, 0, 0, Fault.UNDECODABLE]
    assert [column(found, row, 0, of, vectors) for row in range(3)] == ["a", "b", "c"]


def test_doubles_are_the_nearest_ones() -> None:
    """Short and long ones, in one batch, also as FLOAT."""
    random = Random(3)
    numbers = [random.uniform(-1, 1) * 10 ** random.randrange(-300, 300) for _ in range(200)]
    texts = [repr(each) for each in numbers] + ["0." + "1" * 60, "1e400", "-1e-400"]
    values = [f'{{"ratio": {text}, "single": {text}}}'.encode() for text in texts]
    found, _ = read(values, [("ratio",), ("single",)])
    with np.errstate(over="ignore"):
        singles = [float(np.float32(float(text))) for text in texts]
    assert [one["ratio",] for one in found] == [float(text) for text in texts]
    assert [one["single",] for one in found] == singles
    assert column_type(record_type(json.dumps(SCHEMA)), ("single",)) == FLOAT
