"""Avro schemas as tests write them."""

from __future__ import annotations

from typing import Any

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}


def record(full_name: str, /, **types: Any) -> dict[str, Any]:
    """A record schema: types by field name. A type may be a whole field, as from :func:`field`."""
    namespace, _, name = full_name.rpartition(".")
    fields = [
        {"name": field_name, **(kind if "field" in kind else {"type": kind})}
        for field_name, kind in types.items()
    ]
    for each in fields:
        each.pop("field", None)
    made = {"type": "record", "name": name, "fields": fields}
    return {**made, "namespace": namespace} if namespace else made


def field(kind: Any, **more: Any) -> dict[str, Any]:
    """A field with more than a type: ``default``, ``aliases``."""
    return {"field": True, "type": kind, **more}
