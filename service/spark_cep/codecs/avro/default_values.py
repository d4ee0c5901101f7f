"""Defaults of a reader's fields: JSON of a schema as the values that expressions compute with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.avro.schema_nodes import Node, kind
from spark_cep.columns.representation import from_whole
from spark_cep.errors import SchemaError
from spark_cep.pattern.types import BIGINT, DOUBLE, FLOAT, INT, DecimalType, scalar_type

_WRONG = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError)
#: By type, those of a whole number beside its sign.
_BITS = {"int": 31, "long": 63}
#: By primitive, the JSON values it may have.
_JSON: Mapping[str, tuple[type, ...]] = {
    "null": (type(None),), "boolean": (bool,), "int": (int,), "long": (int,),
    "float": (int, float), "double": (int, float), "string": (str,), "bytes": (str,),
    "enum": (str,), "fixed": (str,), "array": (list,), "map": (dict,), "record": (dict,),
}  # fmt: skip


def members(schema: AvroSchema, union: list[Node]) -> list[Node]:
    """The types of a union that is read as a record with a field for each; none where it is read
    as one value (:mod:`spark_cep.pattern.types`)."""
    others = [branch for branch in union if kind(branch) != "null"]
    definitions = [schema.resolve(branch) for branch in others]
    if {kind(each) for each in definitions} in ({"int", "long"}, {"float", "double"}):
        types = {scalar_type(each) for each in definitions}
        if types in ({INT, BIGINT}, {FLOAT, DOUBLE}):
            return []
    return others if len(others) > 1 else []


def default_value(schema: AvroSchema, node: Node, value: Any) -> Any:
    """The default ``value`` of a field of type ``node``.

    Raises SchemaError where it is none of the type's.
    """
    try:
        return _value(schema, node, value)
    except _WRONG as error:
        raise SchemaError(
            f"{schema.origin}: {value!r} is no default of the type {node!r}: {error}"
        ) from error


def _value(schema: AvroSchema, node: Node, value: Any) -> Any:
    definition = schema.resolve(node)
    if isinstance(definition, list):
        return _of_union(schema, definition, value)
    what = kind(definition)
    if what in ("null", "array") and not isinstance(value, _JSON[what]):
        # A text would be an array of its letters.
        raise TypeError(f"{type(value).__name__} is not {what}")
    if isinstance(definition, dict):
        match what:
            case "record":
                return {
                    field["name"]: _value(
                        schema, field["type"], value.get(field["name"], field.get("default"))
                    )
                    for field in definition["fields"]
                }
            case "array":
                return [_value(schema, definition["items"], item) for item in value]
            case "map":
                return {k: _value(schema, definition["values"], v) for k, v in value.items()}
            case "enum":
                return definition["symbols"][definition["symbols"].index(value)]
    return None if what == "null" else _scalar(definition, what, value)


def _of_union(schema: AvroSchema, branches: list[Node], value: Any) -> Any:
    fitting = (b for b in branches if isinstance(value, _JSON[kind(schema.resolve(b))]))
    branch = next(fitting, branches[0])
    found = _value(schema, branch, value)
    several = members(schema, branches)
    if found is None or not several:
        return found
    fields = dict.fromkeys(f"member{number}" for number in range(len(several)))
    return fields | {f"member{several.index(branch)}": found}


def _scalar(node: Node, what: str, value: Any) -> Any:
    of = scalar_type(node)
    if what in ("bytes", "fixed"):
        raw = value.encode("latin-1")
        if isinstance(of, DecimalType):
            return from_whole(of)(int.from_bytes(raw, "big", signed=True))
        return raw
    if what in ("float", "double"):
        return float(np.float32(value)) if what == "float" else float(value)
    if what in ("int", "long"):
        logical = str(node.get("logicalType")) if isinstance(node, dict) else ""
        if not -(1 << _BITS[what]) <= int(value) < 1 << _BITS[what]:
            raise ValueError(f"out of the range of {what}")
        return from_whole(of)(int(value) * (1_000 if logical.endswith("timestamp-millis") else 1))
    if not isinstance(value, _JSON[what]):
        raise TypeError(f"{type(value).__name__} is not {what}")
    return value
