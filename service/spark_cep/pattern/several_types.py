"""Columns of events that may be of several record types.

A column has one type where all record types that have it agree, or differ in the size of a number
alone: INT with BIGINT, FLOAT with DOUBLE. Any other column is refused where it is used
(:mod:`spark_cep.pattern.expressions.checking.types`), since an expression would mean something else
for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from spark_cep.pattern.types import (
    BIGINT,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    UNKNOWN,
    RecordType,
    SqlType,
    column_type,
)

InputRecord = tuple[str, str, RecordType]
"""Where a record type is from, its full name and its columns."""

_WIDER: Mapping[frozenset[SqlType], SqlType] = {
    frozenset({INT, BIGINT}): BIGINT,
    frozenset({FLOAT, DOUBLE}): DOUBLE,
}


@dataclass(frozen=True, slots=True, eq=True)
class AnyRecord(RecordType):
    """A record that is one of ``records``; ``fields`` are those of all of them together."""

    records: tuple[InputRecord, ...] = ()

    __hash__ = RecordType.__hash__

    @classmethod
    def of(cls, records: Sequence[InputRecord]) -> AnyRecord:
        """One of these record types."""
        columns = [columns for _, _, columns in records]
        return cls(merged(columns).fields, records=tuple(records))

    def several_types(self, path: Sequence[str]) -> str | None:
        """Describe the types of a column that has different types in several record types, also
        where an enclosing record is something else in one of them; ``None`` otherwise."""
        for length in range(1, len(path) + 1):
            found = [
                (source, name, kind)
                for source, name, columns in self.records
                if (kind := column_type(columns, tuple(path[:length]))) is not None
            ]
            kinds = [kind for _, _, kind in found]
            inside = all(isinstance(kind, RecordType) for kind in kinds if kind != NULL)
            if one_type(kinds) is None and not (inside and length < len(path)):
                return listed(found)
        return None

    def symbols_of(self, path: Sequence[str]) -> tuple[str, ...]:
        """The symbols that a column may have; none where it is no enum, or not everywhere one."""
        around = [column_type(columns, tuple(path[:-1])) for _, _, columns in self.records]
        having = [r for r in around if isinstance(r, RecordType) and path[-1] in r.fields]
        found = [r.symbols.get(path[-1], ()) for r in having if r.fields[path[-1]] != NULL]
        every = dict.fromkeys(symbol for symbols in found for symbol in symbols)
        return tuple(every) if all(found) else ()


def one_type(kinds: Iterable[SqlType]) -> SqlType | None:
    """The type that columns of ``kinds`` have together: NULL for no types, ``None`` where there is
    none."""
    distinct = frozenset(kinds) - {NULL}
    if len(distinct) <= 1:
        return next(iter(distinct), NULL)
    return _WIDER.get(distinct)


def listed(found: Iterable[tuple[str, str, SqlType]]) -> str:
    """Each type with the first record type that has it: ``INT in t.Order (input orders)``."""
    first: dict[SqlType, str] = {}
    for source, name, kind in found:
        if kind != NULL:
            first.setdefault(kind, f"{name} ({source})" if source else name)
    return ", ".join(f"{kind} in {where}" for kind, where in first.items())


def merged(types: Sequence[RecordType]) -> RecordType:
    """One record with the fields of all of ``types``; UNKNOWN are those of several types."""
    if len(types) == 1:
        return types[0]
    fields: dict[str, SqlType] = {}
    for record in types:
        for name, kind in record.fields.items():
            fields[name] = _both(fields[name], kind) if name in fields else kind
    return RecordType(fields)


def _both(one: SqlType, other: SqlType) -> SqlType:
    if isinstance(one, RecordType) and isinstance(other, RecordType):
        return merged([one, other])
    return one_type([one, other]) or UNKNOWN
