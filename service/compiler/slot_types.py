"""The type of a column that travels with events, over all record types that have it."""

from __future__ import annotations

from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import Slot
from service.errors import SchemaError
from service.pattern.type_check import WIDER
from service.pattern.types import NULL, SqlType, column_type


def slot_type(slot: Slot, types: RecordTypes) -> SqlType:
    """The slot's type, the wider one of two sizes of a number; NULL where no type has the column.

    Raises SchemaError where its types are others.
    """
    found = {
        record: kind
        for one in types.known
        if RecordTypes((one,)).of(slot.events, slot.of_type) is not None
        and (kind := column_type(one[2], slot.path)) not in (None, NULL)
        for record in [one[1]]
    }
    kinds = frozenset(found.values())
    if len(kinds) <= 1:
        return next(iter(kinds), NULL)
    if kinds in WIDER:
        return WIDER[kinds]
    listed = ", ".join(f"{kind} in {record}" for record, kind in found.items())
    raise SchemaError(
        f"column {'.'.join(slot.path)} is {listed}: give the step an of_type to say which"
    )
