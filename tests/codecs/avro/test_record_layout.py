"""Columns out of Avro bytes: what the decoder's random records (``tests/pipeline/decode``) seldom
meet: bounds of decimals, depth, defaults of every type, types that are used again and again."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import numpy as np
import pytest

from spark_cep.codecs.avro import schema_layout
from spark_cep.codecs.avro.default_values import default_value
from spark_cep.codecs.avro.loops import record_bytes
from spark_cep.codecs.avro.record_layout import Layouts, LayoutWriter
from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.record_faults import Fault
from spark_cep.codecs.record_reader import Read
from spark_cep.codecs.registry.framing import frame
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.representation import Representation, from_whole, representation, to_whole
from spark_cep.columns.vectors import Bytes
from spark_cep.errors import SchemaError
from spark_cep.pattern.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    SqlType,
    column_type,
    record_type,
)
from tests.e2e.poison import number, text
from tests.e2e.schemas import MICROS, MILLIS, field, record

DAY = {"type": "int", "logicalType": "date"}
CENTS = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
FIXED = {"type": "fixed", "name": "F", "size": 2}


def schema(node: Any) -> AvroSchema:
    """A schema."""
    return parse(json.dumps(node), "test")


def test_faults_have_the_numbers_of_the_loops() -> None:
    """Which name them, compiled as they are, on their own."""
    assert [Fault(n).name for n in range(record_bytes.TOO_LARGE + 1)] == [
        "NONE", "TOMBSTONE", "NOT_READ", "NOT_FRAMED", "UNKNOWN_SCHEMA", "UNDECODABLE",
        "UNREADABLE_SCHEMA", "BAD_VALUE", "TOO_DEEP", "TOO_LARGE",
    ]  # fmt: skip
    assert (
        record_bytes.READ, record_bytes.ABSENT, record_bytes.NOT_READ, record_bytes.NOT_FRAMED,
        record_bytes.UNKNOWN_ID, record_bytes.UNDECODABLE, record_bytes.UNREADABLE,
        record_bytes.BAD_VALUE, record_bytes.TOO_DEEP, record_bytes.TOO_LARGE,
    ) == (
        Fault.NONE, Fault.TOMBSTONE, Fault.NOT_READ, Fault.NOT_FRAMED, Fault.UNKNOWN_SCHEMA,
        Fault.UNDECODABLE, Fault.UNREADABLE_SCHEMA, Fault.BAD_VALUE, Fault.TOO_DEEP,
        Fault.TOO_LARGE,
    )  # fmt: skip


def layouts_of(writer: Any, reader: Any, *columns: str) -> tuple[Layouts, dict[str, int]]:
    """The layout of schema id 1, and the vectors of columns."""
    vectors, types = ColumnVectors(), record_type(schema(reader).text)
    wanted: dict[Any, tuple[int, SqlType]] = {}
    for name in columns:
        path = tuple(name.split("."))
        kind = column_type(types, path)
        assert kind is not None
        wanted[path] = vectors.value(path, kind), kind
    out = LayoutWriter(vectors)
    program = out.record(0, schema(writer), schema(reader), wanted)
    layouts = out.written([1], [[program]])
    return layouts, {".".join(path): vector for path, (vector, _) in wanted.items()}


def read(layouts: Layouts, *bodies: bytes) -> Read:
    """Records with these bodies."""
    values = Bytes.of([frame(1, body) for body in bodies])
    return layouts.read(values, Bytes.of([None] * len(values)), np.zeros(len(values), np.int32))


def other(layouts: Layouts, found: Read, row: int, vector: int) -> Any:
    """The value of a column that is left in its place."""
    if found.nulls[row, vector]:
        return None
    reader = int(found.wholes[row, vector + 1])
    if reader < 0:
        return layouts.constants[-1 - reader]
    start, length = divmod(int(found.wholes[row, vector]), 1 << 32)
    return layouts.readers[reader](found.data[start : start + length].tobytes())


def unscaled(value: int, size: int | None = None) -> bytes:
    """A number as decimals have it."""
    return value.to_bytes(size or (value.bit_length() + 8) // 8, "big", signed=True)


@pytest.mark.parametrize("precision", [1, 9, 18, 19, 30, 38])
@pytest.mark.parametrize("size", [None, 30])
def test_the_bounds_of_decimals(precision: int, size: int | None) -> None:
    """The largest and least values are read, the next ones are out of range, however many bytes
    they are written with."""
    kind = {"logicalType": "decimal", "precision": precision, "scale": 1}
    written = (
        {"type": "bytes", **kind}
        if size is None
        else {"type": "fixed", "name": "F", "size": size, **kind}
    )
    layouts, vectors = layouts_of(record("R", x=written), record("R", x=written), "x")
    most = 10**precision - 1
    sound = [0, 1, -1, most, -most, most - 1]
    beyond = [most + 1, -most - 1, 2**127, -(2**127), 2**64 * 10**precision, 2**130]
    bodies = [
        text(unscaled(each)) if size is None else unscaled(each, size) for each in [*sound, *beyond]
    ]
    found = read(layouts, *bodies)
    assert found.faults.tolist() == [record_bytes.READ] * 6 + [record_bytes.BAD_VALUE] * 6
    of = DecimalType(precision, 1)
    if representation(of) is Representation.WHOLE:
        values = [from_whole(of)(each) for each in found.wholes[:6, vectors["x"]].tolist()]
    else:
        values = [other(layouts, found, row, vectors["x"]) for row in range(6)]
    assert values == [Decimal(f"{each}e-1") for each in sound]


def test_types_that_contain_themselves() -> None:
    """They are skipped to a depth that is bounded, and what stands behind them is read."""
    tree = record("T", next=["null", "T"], more={"type": "array", "items": "T"})
    writer = record("R", tree=tree, n="int", last="T", x=["null", "T"])
    layouts, vectors = layouts_of(writer, record("R", n="int"), "n")
    leaf = number(0) + number(0)

    def deep(levels: int) -> bytes:
        return number(1) * levels + leaf + number(0) * levels

    fine, too_deep = record_bytes.MOST_DEEP - 1, record_bytes.MOST_DEEP + 1
    items = number(0) + number(2) + leaf + leaf + number(0)
    found = read(
        layouts,
        leaf + number(7) + leaf + number(0),
        deep(fine) + number(8) + items + number(1) + leaf,
        deep(too_deep) + number(9) + leaf + number(0),
        (number(1) + number(0) + number(-1) + number(2)) * 3,
    )
    outcomes = [record_bytes.READ, record_bytes.READ, record_bytes.TOO_DEEP]
    assert found.faults.tolist() == [*outcomes, record_bytes.UNDECODABLE]
    assert found.wholes[:2, vectors["n"]].tolist() == [7, 8]


def test_a_type_that_is_used_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doubling a record twenty times does not make a million operations."""
    monkeypatch.setattr(schema_layout, "_MOST_WRITTEN_OUT", 100)
    node: Any = record("R0", a="int", b="string")
    for level in range(1, 12):
        node = record(f"R{level}", a=node, b=f"R{level - 1}")
    writer = record("R", big=node, n="int")
    layouts, vectors = layouts_of(writer, record("R", n="int"), "n")
    assert len(layouts.code) < 1_000
    found = read(layouts, (number(1) + text(b"x")) * 2**11 + number(5))
    assert found.faults.tolist() == [record_bytes.READ]
    assert found.wholes[0, vectors["n"]] == 5


DEFAULTS: list[tuple[Any, Any, Any]] = [
    ("boolean", True, True),
    ("int", -3, -3),
    ("float", 0.1, float(np.float32(0.1))),
    ("double", 2, 2.0),
    ("string", "ü", "ü"),
    ("bytes", "\u00ff\u0000", b"\xff\0"),
    (DAY, 3, date(1970, 1, 4)),
    (MILLIS, 1, datetime(1970, 1, 1, 0, 0, 0, 1000, UTC)),
    (MICROS, 1, datetime(1970, 1, 1, 0, 0, 0, 1, UTC)),
    (CENTS, "\u00ff", Decimal("-0.01")),
    (FIXED, "ab", b"ab"),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
    ({"type": "array", "items": "float"}, [0.5, 2], [0.5, 2.0]),
    ({"type": "map", "values": DAY}, {"a": 0}, {"a": date(1970, 1, 1)}),
    (["null", "int"], None, None),
    (["int", "null"], 4, 4),
    (["null", "int", "string"], "x", {"member0": None, "member1": "x"}),
    (["long", "int"], 4, 4),
    (record("N", a=field("int", default=1), b="string"), {"b": "y"}, {"a": 1, "b": "y"}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "default", "value"), DEFAULTS)
def test_defaults(kind: Any, default: Any, value: Any) -> None:
    """A default of each type is the value that the type's column has, whether the column is in an
    array of numbers or not."""
    reader = record("R", n="int", x=field(kind, default=default))
    layouts, vectors = layouts_of(record("R", n="int"), reader, "x", "n")
    found = read(layouts, number(1))
    assert found.faults.tolist() == [record_bytes.READ]
    vector = vectors["x"]
    of = column_type(record_type(schema(reader).text), ("x",))
    assert of is not None
    if found.nulls[0, vector]:
        made = None
    elif representation(of) is Representation.WHOLE:
        made = from_whole(of)(int(found.wholes[0, vector]))
    elif representation(of) is Representation.DOUBLE:
        made = found.doubles[0, vector]
    elif representation(of) is Representation.TEXT:
        start, length = divmod(int(found.wholes[0, vector]), 1 << 32)
        made = found.data[start : start + length].tobytes().decode()
    else:
        made = layouts.constants[-1 - int(found.wholes[0, layouts.width - 1])]
    assert (made, type(made)) == (value, type(value)) or made == value


def test_a_default_of_another_type() -> None:
    """It is refused with what it is and should be."""
    for kind, default in (("bytes", 3), (DAY, 2**40), ("string", 1), (["int", "null"], "x")):
        with pytest.raises(SchemaError, match="is no default of the type"):
            default_value(schema("int"), kind, default)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (BOOLEAN, True), (INT, -5), (DATE, date(1, 1, 1)), (DATE, date(9999, 12, 31)),
        (TIMESTAMP, datetime(1, 1, 1, tzinfo=UTC)), (DecimalType(18, 18), Decimal(1).scaleb(-18)),
        (DecimalType(18, 0), Decimal(10**18 - 1)),
    ],
)  # fmt: skip
def test_whole_numbers_and_back(kind: SqlType, value: Any) -> None:
    """What stands as a whole number is the same again."""
    back = from_whole(kind)(to_whole(kind)(value))
    assert (back, type(back)) == (value, type(value))


def test_forms() -> None:
    """What is no number of 64 bits and no text stays where it is."""
    kinds = [INT, DOUBLE, STRING, DecimalType(18, 2), DecimalType(19, 2), BINARY, TIMESTAMP_NTZ]
    names = ["WHOLE", "DOUBLE", "TEXT", "WHOLE", *["OBJECT"] * 3]
    assert [representation(kind).name for kind in kinds] == names


def test_values_in_their_place() -> None:
    """Nested values are read with the writer's schema into the reader's: what the writer has more
    is passed over, also where it contains itself."""
    tree = record("T", name="string", more={"type": "array", "items": "T"})
    sizes = {"type": "map", "values": {"type": "array", "items": "long"}}
    gone = ["null", "string", FIXED]
    written = record("I", tree=tree, old="int", sizes=sizes, gone=gone, flag="boolean")
    items = {"type": "array", "items": written}
    read_as = record("I", new=field("double", aliases=["old"]), flag="boolean",
                     added=field(["null", "string", "int"], default="d"))  # fmt: skip
    reader = record("R", x={"type": "array", "items": read_as})
    layouts, vectors = layouts_of(record("R", x=items), reader, "x")
    leaf: Any = {"name": "leaf", "more": []}
    item = {
        "tree": {"name": "root", "more": [leaf, {"name": "", "more": [leaf]}]},
        "old": 7,
        "sizes": {"a": [1, 2], "b": []},
        "gone": b"no",
        "flag": True,
    }
    body = BytesIO()
    fastavro.schemaless_writer(
        body, fastavro.parse_schema(json.loads(json.dumps(record("R", x=items)))), {"x": [item] * 2}
    )
    found = read(layouts, body.getvalue())
    assert found.faults.tolist() == [record_bytes.READ]
    expected = {"new": 7.0, "flag": True, "added": {"member0": "d", "member1": None}}
    assert other(layouts, found, 0, vectors["x"]) == [expected] * 2
    # A block that says how long it is is looked at all the same.
    block = body.getvalue()[1:-1]
    sized = number(-2) + number(len(block)) + block + number(0)
    assert other(layouts, read(layouts, sized), 0, vectors["x"]) == [expected] * 2
    torn = number(-2) + number(len(block) - 1) + block[:-1] + number(0)
    assert read(layouts, torn).faults.tolist() == [record_bytes.UNDECODABLE]
