"""The names that expressions may use: columns of the event, and steps with their columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from spark_cep.documents.places import Path
from spark_cep.language.documents import OpenDocument
from spark_cep.language.places.statements import StatementText
from spark_cep.pattern.several_types import AnyRecord, InputRecord
from spark_cep.pattern.types import RecordType, SqlType, column_type

_STEP: Final = re.compile(r"\bstep[\"']?\s*:\s*[\"']?([A-Za-z_]\w*)")
_OF_TYPE: Final = re.compile(r"\bof_type[\"']?\s*:\s*[\"']?([\w.]+)")


@dataclass(frozen=True)
class NamesInScope:
    """The names of one expression. ``event``: the columns of the event under test, ``steps``: those
    of each step's events; records without any where no types are known. ``by_step``: what stands
    before a dot may be a step."""

    event: AnyRecord = field(default_factory=lambda: AnyRecord.of([]))
    steps: Mapping[str, AnyRecord] = field(default_factory=lambda: MappingProxyType({}))

    def record_of(self, path: Sequence[str]) -> RecordType | None:
        """The record that a dotted name before another dot stands for."""
        if not path:
            return self.event
        kind = self.type_of(path)
        return kind if isinstance(kind, RecordType) else None

    def type_of(self, path: Sequence[str]) -> SqlType | None:
        """The type of a column, by the name as it is written."""
        if path and path[0] in self.steps:
            return column_type(self.steps[path[0]], tuple(path[1:]))
        return column_type(self.event, tuple(path))

    def symbols_of(self, path: Sequence[str]) -> tuple[str, ...]:
        """The symbols of the enum that a column is; none where it is no enum."""
        record, rest = self._owner(path)
        return record.symbols_of(rest) if rest else ()

    def records_of(self, path: Sequence[str]) -> list[InputRecord]:
        """The record types in which a column may be."""
        record, rest = self._owner(path)
        return [each for each in record.records if column_type(each[2], tuple(rest)) is not None]

    def column(self, path: Sequence[str]) -> tuple[str, ...]:
        """The column that a name stands for, without the step before it."""
        return tuple(self._owner(path)[1])

    def _owner(self, path: Sequence[str]) -> tuple[AnyRecord, Sequence[str]]:
        if path and path[0] in self.steps:
            return self.steps[path[0]], path[1:]
        return self.event, path


def names_in_document(
    document: OpenDocument, around: str, path: Path, values: Mapping[Path, str]
) -> NamesInScope:
    """The names of an expression in YAML. ``around``: the text of its document; ``path``: the
    expression's; ``values``: the scalars before it."""
    inputs = [value for at, value in values.items() if at[:1] == ("events",)]
    records = document.records(inputs)
    event = AnyRecord.of(records)
    steps = {} if path[:1] == ("key",) else dict(_steps(around, records, event))
    of_type = values.get((*path[:-1], "of_type"))
    return NamesInScope(_of_type(records, of_type, event), steps)


def names_in_statement(document: OpenDocument, statement: StatementText) -> NamesInScope:
    """The names of an expression in a statement."""
    inputs = [] if statement.input is None else [statement.input]
    event = AnyRecord.of(document.records(inputs))
    return NamesInScope(event, dict.fromkeys(statement.variables, event))


def step_names(around: str) -> list[str]:
    """The names of the steps in the text of a rule, also where it cannot be read."""
    return list(dict.fromkeys(_STEP.findall(around)))


def record_names(records: Sequence[InputRecord]) -> list[str]:
    """The full names of record types."""
    return list(dict.fromkeys(name for _, name, _ in records))


def _steps(
    around: str, records: Sequence[InputRecord], event: AnyRecord
) -> Iterator[tuple[str, AnyRecord]]:
    found = list(_STEP.finditer(around))
    for number, step in enumerate(found, 1):
        end = found[number].start() if number < len(found) else len(around)
        of_type = _OF_TYPE.search(around, step.end(), end)
        yield step[1], _of_type(records, of_type[1] if of_type else None, event)


def _of_type(records: Sequence[InputRecord], name: str | None, otherwise: AnyRecord) -> AnyRecord:
    chosen = [each for each in records if name in (each[1], each[1].rpartition(".")[2])]
    return AnyRecord.of(chosen) if chosen else otherwise
