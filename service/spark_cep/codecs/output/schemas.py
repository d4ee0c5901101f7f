"""The public Avro schemas of output records, and the tables of their fields in the documentation.

``python -m spark_cep.codecs.output.schemas schemas docs/output.md`` writes all of them again.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from spark_cep.codecs.output.fields import RECORDS, Contract
from spark_cep.codecs.output.record_shape import FieldType, OutputField, Record

SCALARS = ["null", "boolean", "long", "double", "string", "bytes"]
#: One of the values of a map.
VALUE = [*SCALARS, {"type": "array", "items": SCALARS}]
_VALUES = {"type": "map", "values": VALUE}
#: Each type in Avro.
AVRO_TYPES: dict[FieldType, Any] = {
    FieldType.TEXT: "string",
    FieldType.OPTIONAL_TEXT: ["null", "string"],
    FieldType.INT: "int",
    FieldType.LONG: "long",
    FieldType.TIME: {"type": "long", "logicalType": "timestamp-millis"},
    FieldType.FLAG: "boolean",
    FieldType.OPTIONAL_BYTES: ["null", "bytes"],
    FieldType.VALUES: _VALUES,
    FieldType.OPTIONAL_VALUES: ["null", _VALUES],
}
_DEFAULTS: dict[FieldType, Any] = {
    FieldType.OPTIONAL_TEXT: None,
    FieldType.OPTIONAL_BYTES: None,
    FieldType.VALUES: {},
    FieldType.OPTIONAL_VALUES: None,
}


@cache
def schema_text(contract: Contract) -> str:
    """The public Avro schema of a kind of output record, as it is to be registered and as the file
    in ``schemas/`` has it."""
    return "\n".join(["{", *_lines(RECORDS[contract], "  ", "sparkcep.v1"), "}"]) + "\n"


def _lines(record: Record, indent: str, namespace: str | None = None) -> Iterator[str]:
    yield f'{indent}"type": "record",'
    yield f'{indent}"name": {json.dumps(record.name)},'
    if namespace is not None:
        yield f'{indent}"namespace": {json.dumps(namespace)},'
    yield f'{indent}"doc": {json.dumps(record.doc)},'
    yield f'{indent}"fields": ['
    for field in record.fields:
        comma = "" if field is record.fields[-1] else ","
        if isinstance(field.type, Record):
            head = json.dumps({"name": field.name, "doc": field.doc})[:-1]
            yield indent + "  " + head + ', "type": {"type": "array", "items": {'
            yield from _lines(field.type, indent + "    ")
            yield f"{indent}  }}}}}}{comma}"
        else:
            yield indent + "  " + json.dumps(_field(field, field.type)) + comma
    yield f"{indent}]"


def _field(field: OutputField, of: FieldType) -> dict[str, Any]:
    made = {"name": field.name, "type": AVRO_TYPES[of], "doc": field.doc}
    if field.default is not None:
        return made | {"default": field.default}
    return made | ({"default": _DEFAULTS[of]} if of in _DEFAULTS else {})


def with_tables(page: str) -> str:
    """A page with the tables that stand between lines like ``<!-- fields of Match -->`` and the
    next empty line behind the table written again."""
    records = dict(_records(RECORDS.values()))
    return re.sub(
        r"(?<=<!-- fields of )(\w+)( -->\n\n)(?:\|.*\n)*",
        lambda found: found[1] + found[2] + _table(records[found[1]]),
        page,
    )


def _records(records: Any) -> Iterator[tuple[str, Record]]:
    for record in records:
        yield record.name, record
        yield from _records([f.type for f in record.fields if isinstance(f.type, Record)])


def _table(record: Record) -> str:
    rows = ["| field | type | meaning |", "| --- | --- | --- |"]
    for field in record.fields:
        kind = "array" if isinstance(field.type, Record) else field.type.value
        rows.append(
            f"| `{field.name}` | {kind} | {' '.join(filter(None, (field.doc, field.more)))} |"
        )
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    for each in RECORDS:
        (Path(sys.argv[1]) / f"{each}.avsc").write_text(schema_text(each), "utf-8")
    document = Path(sys.argv[2])
    document.write_text(with_tables(document.read_text("utf-8")), "utf-8")
