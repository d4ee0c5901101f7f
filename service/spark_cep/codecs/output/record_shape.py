"""The shape of output records: fields, their types, and where their values come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

from spark_cep.codecs.output.result_columns import Chosen
from spark_cep.columns.compilation import I64
from spark_cep.matcher.findings.named_values import NamedValues
from spark_cep.matcher.findings.output_values import output_value

#: Numbers of all rows, texts of all rows, values of all rows by name, or nothing in all of them.
Column = I64 | Chosen | NamedValues | None


class FieldType(Enum):
    """The type of a field, by its name in the documentation."""

    TEXT = "string"
    OPTIONAL_TEXT = "string or null"
    INT = "int"
    LONG = "long"
    TIME = "timestamp-millis"
    FLAG = "boolean"
    OPTIONAL_BYTES = "bytes or null"
    VALUES = "map"
    OPTIONAL_VALUES = "map or null"


class OutputField(NamedTuple):
    """A field of an output record. ``of`` takes its value from the result (from an item of the
    field that holds this one), or is the path of attributes that leads to it; ``column`` gives
    those of all results that are columns
    (:class:`~spark_cep.codecs.output.result_columns.FieldColumns`). Without ``of`` the value is the
    processing time. ``doc`` is a part of the schema, ``more`` of the documentation alone;
    ``default``: for readers of records that lack the field, where its type has none."""

    name: str
    type: FieldType | Record
    doc: str
    of: str | Callable[[Any], Any] | None
    column: Callable[[Any], Column] | None = None
    more: str = ""
    default: int | None = None


@dataclass(frozen=True)
class Record:
    """A record with its fields in order; a field of this type is an array of such records."""

    name: str
    doc: str
    fields: tuple[OutputField, ...]

    @property
    def items(self) -> Record | None:
        """The records of which one field is an array, if there is one."""
        return next((each.type for each in self.fields if isinstance(each.type, Record)), None)

    @cached_property
    def values(self) -> Callable[[Any, int], dict[str, Any]]:
        """The fields of a result by name, given processing time in milliseconds."""
        paths = {each.name: each.of for each in self.fields if isinstance(each.of, str)}
        # Several at once, which takes half the time; of one path it would be no tuple.
        names = tuple(paths) if len(paths) > 1 else ()
        attributes = attrgetter(*paths.values()) if names else lambda _: ()
        maps = tuple(f.name for f in self.fields if f.type in _MAPS)
        calls = tuple(
            (f.name, attrgetter(f.of) if isinstance(f.of, str) else f.of)
            for f in self.fields
            if f.of is not None and f.name not in names
        )
        items = tuple((f.name, f.type.values) for f in self.fields if isinstance(f.type, Record))
        times = tuple(f.name for f in self.fields if f.of is None)

        def values(result: Any, now: int) -> dict[str, Any]:
            found = dict(zip(names, attributes(result), strict=False))
            for name in maps:
                if found[name] is not None:
                    found[name] = {each: output_value(v) for each, v in found[name].items()}
            for name, of in calls:
                found[name] = of(result)
            for name, each in items:
                found[name] = [each(item, now) for item in found[name]]
            for name in times:
                found[name] = now
            return found

        return values


_MAPS = (FieldType.VALUES, FieldType.OPTIONAL_VALUES)
