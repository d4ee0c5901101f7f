"""The type of a column that travels with events, over all record types that have it."""

from __future__ import annotations

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Slot
from spark_cep.errors import SchemaError
from spark_cep.pattern.several_types import listed, one_type
from spark_cep.pattern.types import SqlType, column_type


def slot_type(slot: Slot, types: RecordTypes) -> SqlType:
    """The slot's type, the wider one of two sizes of a number; NULL where no type has the column.

    Raises SchemaError where its types are others, which the check of the rule has refused before.
    """
    found = [
        (f"input {source}" if source else "", name, kind)
        for source, name, columns in types.known
        if RecordTypes(((source, name, columns),)).of(slot.events, slot.of_type) is not None
        and (kind := column_type(columns, slot.path)) is not None
    ]
    kind = one_type(kind for _, _, kind in found)
    if kind is None:
        raise SchemaError(f"column {'.'.join(slot.path)} is {listed(found)}")
    return kind
