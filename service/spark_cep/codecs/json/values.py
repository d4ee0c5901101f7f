"""Values of JSON in Python, and why one is none of its type.

The compiled loop (:mod:`spark_cep.codecs.json.loops.record_text`) decides what can be read. This
module makes the values of columns that have no place in arrays of numbers, and finds the words for
a record that was refused.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spark_cep.codecs.avro.default_values import default_value, members
from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_nodes import Node, kind
from spark_cep.codecs.json.loops import scalars
from spark_cep.codecs.json.loops.typed_values import FIRST_DAY, FIRST_MICROS, LAST_DAY, LAST_MICROS
from spark_cep.columns.representation import from_whole
from spark_cep.errors import printable, shortened
from spark_cep.pattern.expressions.values.arithmetic import EXACT
from spark_cep.pattern.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DecimalType,
    SqlType,
    scalar_type,
)

#: Bits beside the sign.
BITS = {"int": 31, "long": 63}
_SPECIAL = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_LONGEST_FOUND = 60


class Number(str):
    """A number as it is written."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """The members of an object, in their order."""


class MisfitError(ValueError):
    """A value that is none of its type. ``path``: of its column; ``out_of_range``: it is of the
    right kind."""

    def __init__(self, path: str, found: Any, allowed: str, *, out_of_range: bool = False) -> None:
        super().__init__(f"{path or 'the value'}: found {_said(found)}; allowed: {allowed}")
        self.out_of_range = out_of_range


class MissingError(MisfitError):
    """A field that has to be there."""

    def __init__(self, path: str, of: str) -> None:
        ValueError.__init__(self, f"{path}: the field is missing; it needs {of}")
        self.out_of_range = False


def parsed(text: str) -> Any:
    """The value that a text of JSON has. ValueError where it is none, RecursionError where it
    nests deeply."""
    return json.loads(
        text, parse_int=Number, parse_float=Number, parse_constant=_no_constant,
        object_pairs_hook=Members,
    )  # fmt: skip


def _no_constant(word: str) -> Any:
    raise ValueError(f'{word} is no value of JSON; it can be written as the text "{word}"')


@dataclass(frozen=True)
class JsonValue:
    """Reads values of the type ``node``; picklable."""

    schema: AvroSchema
    node: Node

    def __call__(self, data: bytes) -> Any:
        """The value that is written so."""
        return value_of(self.schema, self.node, parsed(data.decode("utf-8", "surrogateescape")), "")


def value_of(schema: AvroSchema, node: Node, given: Any, path: str) -> Any:
    """The value of type ``node`` that ``given`` is. Raises MisfitError."""
    definition = schema.resolve(node)
    if isinstance(definition, list):
        several = members(schema, definition)
        if given is None and "null" in map(kind, definition):
            return None
        if several:
            return _member(schema, several, given, path)
        definition = schema.resolve(the_only(definition))
    what = kind(definition)
    if isinstance(definition, dict):
        match what, given:
            case "record", Members():
                return _record(schema, definition, given, path)
            case "array", list() if not isinstance(given, Members):
                items = definition["items"]
                return [value_of(schema, items, item, f"{path}[]") for item in given]
            case "map", Members():
                return {
                    _text(name, path): value_of(
                        schema, definition["values"], item, f"{path}.{name}"
                    )
                    for name, item in given
                }
    if what in _NESTING or (what == "null" and given is not None):
        raise MisfitError(path, given, _NESTING.get(what, "null"))
    return None if what == "null" else _scalar(definition, what, given, path)


def the_only(union: Sequence[Node]) -> Node:
    """The type that a union of one, or of a narrow and a wide number, is read as."""
    others = [each for each in union if kind(each) != "null"]
    wide = [each for each in others if kind(each) in ("long", "double")]
    return (wide or others or ["null"])[0]


def choices(schema: AvroSchema, several: Sequence[Node]) -> tuple[int, ...]:
    """The types of a union that a text, a whole number, another number, a boolean, an object and an
    array are of, as places in it; -1: none."""
    of = [kind(schema.resolve(each)) for each in several]
    nested = ("record", "array", "map")
    types = [
        None if what in nested else scalar_type(schema.resolve(each))
        for what, each in zip(of, several, strict=True)
    ]
    places = range(len(of))
    exact = [place for place in places if of[place] in ("int", "long")]
    broken = [p for p in places if isinstance(types[p], DecimalType) or types[p] in (FLOAT, DOUBLE)]
    texts = [place for place in places if of[place] == "string"]
    texts += [p for p in places if types[p] in _TIMES or of[p] in ("enum", "bytes", "fixed")]
    return tuple(
        (fitting or [-1])[0]
        for fitting in (
            texts,
            exact + broken,
            broken,
            [place for place in places if of[place] == "boolean"],
            [place for place in places if of[place] in ("record", "map")],
            [place for place in places if of[place] == "array"],
        )
    )


def _member(schema: AvroSchema, several: Sequence[Node], given: Any, path: str) -> Any:
    match given:
        case Number():
            data = _bytes(given)
            which = 1 if scalars.whole_at(data, 0, len(data), BITS["long"])[1] else 2
        case str():
            which = 0
        case bool():
            which = 3
        case Members():
            which = 4
        case list():
            which = 5
        case _:
            which = -1
    place = which if which < 0 else choices(schema, several)[which]
    if place < 0:
        allowed = ", ".join(kind(schema.resolve(each)) for each in several)
        raise MisfitError(path, given, f"one of {allowed}")
    found = value_of(schema, several[place], given, path)
    of_all = dict.fromkeys(f"member{number}" for number in range(len(several)))
    return of_all | {f"member{place}": found}


def names_of_fields(definition: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The fields of a record by each name that they may have; a name comes before an alias."""
    fields = definition["fields"]
    aliases = {alias: each for each in fields for alias in each.get("aliases", ())}
    return aliases | {each["name"]: each for each in fields}


def _record(
    schema: AvroSchema, definition: Mapping[str, Any], given: Members, path: str
) -> dict[str, Any]:
    fields, found = names_of_fields(definition), {}
    for name, item in given:
        field = fields.get(name)
        if field is None:
            continue
        below = f"{path}.{field['name']}" if path else field["name"]
        if item is None and not may_be_null(schema, field["type"]) and "default" in field:
            found[field["name"]] = default_value(schema, field["type"], field["default"])
        else:
            found[field["name"]] = value_of(schema, field["type"], item, below)
    for field in definition["fields"]:
        name = field["name"]
        if name in found:
            continue
        if "default" in field:
            found[name] = default_value(schema, field["type"], field["default"])
        elif may_be_null(schema, field["type"]):
            found[name] = None
        else:
            raise MissingError(
                f"{path}.{name}" if path else name, _allowed_of(schema, field["type"])
            )
    return {field["name"]: found[field["name"]] for field in definition["fields"]}


def may_be_null(schema: AvroSchema, node: Node) -> bool:
    """Return whether null is a value of a type."""
    definition = schema.resolve(node)
    return definition == "null" or (
        isinstance(definition, list) and "null" in map(kind, definition)
    )


def _scalar(node: Node, what: str, given: Any, path: str) -> Any:
    of = scalar_type(node)
    match given:
        case bool() if of == BOOLEAN:
            return given
        case Number() if of in (FLOAT, DOUBLE):
            return _as_float(float(given), of)
        case Number() if isinstance(of, DecimalType) or what in BITS:
            return _of_number(node, what, of, given, path)
        case str() if not isinstance(given, Number):
            return _of_text(node, what, of, _text(given, path), path)
    raise MisfitError(path, given, _allowed(node, of))


def _of_text(node: Node, what: str, of: SqlType, text: str, path: str) -> Any:
    if what == "string":
        return text
    if of in (FLOAT, DOUBLE) and text in _SPECIAL:
        return _SPECIAL[text]
    if isinstance(of, DecimalType):
        data = _bytes(text)
        if scalars.number_at(data, 0, len(data))[0] == len(data):
            return _of_number(node, what, of, Number(text), path)
    elif of in _TIMES:
        return _of_time(node, of, text, path)
    elif what in ("bytes", "fixed"):
        size = node["size"] if isinstance(node, dict) and what == "fixed" else None
        return _of_base64(text, size, path)
    elif isinstance(node, dict) and what == "enum" and text in node["symbols"]:
        return text
    raise MisfitError(path, text, _allowed(node, of))


def _of_number(node: Node, what: str, of: SqlType, given: Number, path: str) -> Any:
    data = _bytes(given)
    _, _, _, count, power = scalars.number_at(data, 0, len(data))
    if isinstance(of, DecimalType):
        if not scalars.fits_decimal(count, power, of.precision, of.scale):
            raise MisfitError(path, given, _allowed(node, of), out_of_range=True)
        exact = EXACT.scaleb(EXACT.create_decimal(given), of.scale) if count else 0
        return from_whole(of)(int(exact))
    value, fits = scalars.whole_at(data, 0, len(data), BITS[what])
    if not fits:
        is_whole = count + power > 0 and power >= 0
        raise MisfitError(path, given, _allowed(node, of), out_of_range=is_whole)
    if of == DATE:
        within = FIRST_DAY <= value <= LAST_DAY
    elif of in _TIMES:
        value = int(value) * (1_000 if _is_millis(node) else 1)
        within = FIRST_MICROS <= value <= LAST_MICROS
    else:
        return int(value)
    if not within:
        raise MisfitError(path, given, "a time of the years 1 to 9999", out_of_range=True)
    return from_whole(of)(int(value))


def _of_time(node: Node, of: SqlType, text: str, path: str) -> Any:
    data = _bytes(text)
    if of == DATE:
        days, behind = scalars.day_at(data, 0, len(data))
        if behind != len(data):
            raise MisfitError(path, text, _allowed(node, of))
        return from_whole(of)(int(days))
    micros, is_one = scalars.micros_at(data, 0, len(data))
    if not is_one:
        raise MisfitError(path, text, _allowed(node, of))
    if _is_millis(node):
        micros = micros // 1_000 * 1_000
    if not FIRST_MICROS <= micros <= LAST_MICROS:
        raise MisfitError(path, text, "a time of the years 1 to 9999", out_of_range=True)
    return from_whole(of)(int(micros))


def _of_base64(text: str, size: int | None, path: str) -> bytes:
    data = _bytes(text)
    length = scalars.base64_bytes(data, 0, len(data))
    if length < 0 or size not in (None, length):
        exactly = "" if size is None else f" of {size} bytes"
        raise MisfitError(path, text, f"a text in base64{exactly}")
    return b64decode(text)


def _as_float(value: float, of: SqlType) -> float:
    if of == DOUBLE:
        return value
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _is_millis(node: Node) -> bool:
    return isinstance(node, dict) and str(node.get("logicalType")).endswith("millis")


def _text(text: str, path: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MisfitError(path, text, "text in UTF-8") from None
    return text


def _bytes(text: str) -> Any:
    return np.frombuffer(text.encode("utf-8", "surrogateescape"), np.uint8)


_TIMES = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
_NESTING = {"record": "an object", "array": "an array", "map": "an object"}


def _allowed_of(schema: AvroSchema, node: Node) -> str:
    definition = schema.resolve(node)
    if isinstance(definition, list):
        return ", ".join(dict.fromkeys(_allowed_of(schema, each) for each in definition))
    what = kind(definition)
    if what in _NESTING or what == "null":
        return _NESTING.get(what, "null")
    return _allowed(definition, scalar_type(definition))


def _allowed(node: Node, of: SqlType) -> str:
    match kind(node), of:
        case _, DecimalType():
            return f"a number, or text that is one, of type {of}"
        case "int" | "long", _ if of == DATE:
            return "days since 1970-01-01, or text as 2026-01-31"
        case "int" | "long", _ if of in _TIMES:
            unit = "milliseconds" if _is_millis(node) else "microseconds"
            return f"{unit} since 1970, or text in ISO 8601 as 2026-01-31T12:00:00Z"
        case "int" | "long", _:
            return f"a whole number of type {of}"
        case "float" | "double", _:
            return f'a number, "NaN", "Infinity" or "-Infinity" ({of})'
        case "boolean", _:
            return "true or false"
        case "enum", _:
            assert isinstance(node, dict)
            return ", ".join(map(json.dumps, node["symbols"]))
        case "string", _:
            return f"a text ({STRING})"
    return "a text in base64"


def _said(found: Any) -> str:
    match found:
        case None:
            return "null"
        case bool():
            return "true" if found else "false"
        case Number():
            return f"the number {printable(shortened(found, _LONGEST_FOUND))}"
        case str():
            return f'the text "{printable(shortened(found, _LONGEST_FOUND))}"'
        case Members():
            return "an object"
    return "an array"
