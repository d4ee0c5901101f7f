"""The public JSON Schemas of records about rules: ``python -m spark_cep.rules.schemas KIND``."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from pydantic import TypeAdapter

from spark_cep.rules.overrides import Override
from spark_cep.rules.topic_records import AuditRecord, StatusRecord

_HEAD: Final = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
_KINDS: Final[dict[str, tuple[str, Any]]] = {
    "audit": ("spark-cep rule audit record", AuditRecord),
    "status": ("spark-cep rule status record", StatusRecord),
    "override": ("spark-cep rule override", Override),
}


def schema_text(kind: str) -> str:
    """The JSON Schema of a kind of record, as ``schemas/rule-KIND.schema.json`` has it."""
    title, records = _KINDS[kind]
    schema = {**_HEAD, "title": title, **TypeAdapter(records).json_schema()}
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text(sys.argv[1]))
