"""Reader schemas with types that cannot be read: their columns alone are left out."""

from __future__ import annotations

import pytest

from spark_cep.codecs.avro.schema import parse
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.pattern.types import STRING, UnreadableType

_WIDE = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}
_RECURSIVE = {"type": "array", "items": "E"}


@pytest.mark.parametrize(
    ("kind", "reason"), [(_WIDE, "DECIMAL(64, 2) is beyond"), (_RECURSIVE, "E contains itself")]
)
def test_the_other_columns_can_be_had(kind: object, reason: str) -> None:
    """The column says why it cannot be read, and the decoder's schema is without it."""
    fields = [{"name": "id", "type": "string"}, {"name": "x", "type": kind}]
    schema = parse({"type": "record", "name": "E", "fields": fields}, "orders-value version 3")
    of = EventType(0, "orders", "E", schema, ("orders",), "id", "ms")
    assert of.columns.fields["id"] == STRING
    unreadable = of.columns.fields["x"]
    assert isinstance(unreadable, UnreadableType)
    assert reason in unreadable.reason
    readable = of.readable
    assert isinstance(readable.root, str)
    assert [each["name"] for each in readable.named[readable.root]["fields"]] == ["id"]
