"""Reader schemas with types that cannot be read: the message says what to do."""

from __future__ import annotations

import pytest

from spark_cep.codecs.avro.schema import parse
from spark_cep.codecs.registry.resolved_schemas import EventType
from spark_cep.errors import SchemaError

_WIDE = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}
_RECURSIVE = {"type": "array", "items": "E"}


@pytest.mark.parametrize("kind", [_WIDE, _RECURSIVE])
def test_the_other_columns_can_be_had(kind: object) -> None:
    """By a file with a reader schema that leaves the field out."""
    fields = [{"name": "id", "type": "string"}, {"name": "x", "type": kind}]
    schema = parse({"type": "record", "name": "E", "fields": fields}, "orders-value version 3")
    of = EventType(0, "orders", "E", schema, ("orders",), "id", "ms")
    with pytest.raises(SchemaError, match=r"set inputs\.orders\.reader_schema to a file"):
        _ = of.columns
