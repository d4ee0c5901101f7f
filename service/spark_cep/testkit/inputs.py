"""The input of a test: rules from objects or files, the inputs that they read, and event
schemas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from spark_cep.codecs.avro.reader_schemas import record_names, record_schema
from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.schema_files import schema_of_file
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.documents.nearest import nearest
from spark_cep.errors import Problem, RuleSetError
from spark_cep.pattern.document.canonical import to_data
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.document.plain_data import load_data
from spark_cep.pattern.fluent import SOURCE
from spark_cep.pattern.several_types import InputRecord
from spark_cep.pattern.tree import Rule
from spark_cep.pattern.type_check import type_check, type_warnings, with_columns_of
from spark_cep.pattern.types import RecordType
from spark_cep.rules.rule_set import RuleSet, assemble
from spark_cep.rules.sources.folder import read_rules
from spark_cep.testkit.event_schema import EventSchema

Rules = Rule | LoadedRule | Iterable[Rule | LoadedRule] | str | PathLike[str]
"""A rule, several, or the path of a rule file or of a folder of them."""

Schema = str | PathLike[str] | Mapping[str, Any] | Sequence[Any]
"""An Avro schema, as its JSON values: a record or a union of records. Or the path of a file: of an
Avro schema, a JSON Schema, or a `.proto` file, which may be given as `FILE.proto:MESSAGE`. Or
schemas that were parsed, each of a record."""

_Types = Mapping[str, EventSchema]


def rule_set(rules: Rules) -> RuleSet:
    """The rules, checked, and of each id the version that would run; ``RuleSetError`` with every
    problem."""
    if isinstance(rules, str | PathLike):
        return read_rules(Path(rules))
    several = rules if isinstance(rules, Iterable) else [rules]
    loaded: list[LoadedRule] = []
    problems: list[Problem] = []
    for rule in several:
        try:
            loaded.append(rule if isinstance(rule, LoadedRule) else _checked(rule))
        except RuleSetError as error:
            problems += error.problems
    if problems:
        raise RuleSetError(problems)
    return assemble(loaded)


def _checked(rule: Rule) -> LoadedRule:
    return load_data(to_data(rule), rule.source or SOURCE)


@dataclass(frozen=True)
class KitInputs:
    """The inputs by name, their schemas by full record name where there are some, and what these
    warn about. No name: the rules name no input, and any will do."""

    names: tuple[str, ...]
    types: Mapping[str, _Types]
    warnings: tuple[Problem, ...] = ()

    @classmethod
    def of(
        cls, rules: RuleSet, schema: Schema | None, schemas: Mapping[str, Schema] | None
    ) -> KitInputs:
        """The inputs that ``rules`` name, with one schema for each or one for all of them.

        Raises RuleSetError when a rule does not fit them, SchemaError when a schema is none.
        """
        if schema is not None and schemas is not None:
            raise ValueError("give `schema`, for all inputs, or `schemas`, by input; not both")
        named = dict.fromkeys(name for rule in rules.rules for name in rule.events)
        if schemas is not None:
            inputs = cls(tuple(schemas), {name: _types(each) for name, each in schemas.items()})
        elif schema is not None:
            types = _types(schema)
            inputs = cls(tuple(named), dict.fromkeys(named or ("",), types))
        else:
            return cls(tuple(named), {})
        problems = [problem for one in rules.loaded for problem in inputs._problems(one)]
        if problems:
            raise RuleSetError(problems)
        warnings = (
            warning for one in rules.loaded for warning in type_warnings(one, inputs._records(one))
        )
        return replace(inputs, warnings=tuple(warnings))

    @property
    def record_types(self) -> RecordTypes:
        """The record types as the machine wants them."""
        known = [
            (name, record, schema.columns)
            for name, records in self.types.items()
            for record, schema in records.items()
        ]
        return RecordTypes(tuple(known))

    def input(self, name: str | None) -> str:
        """The input called ``name``, or the only one; ``ValueError`` where that is none."""
        if name is None:
            if len(self.names) > 1:
                raise ValueError(f"say which input: {', '.join(self.names)}")
            return self.names[0] if self.names else ""
        if self.names and name not in self.names:
            raise ValueError(f"there is no input {name!r}{_instead(name, self.names)}")
        return name

    def read(
        self, source: str, name: str | None, values: Mapping[str, Any]
    ) -> tuple[str | None, Mapping[str, Any]]:
        """The full name of the record type, and the columns as the service would read them; as
        they are where nothing is known of the type. ``ValueError`` when there is no such type, or
        ``values`` do not fit it."""
        known = self.types.get(source) or self.types.get("")
        if known is None:
            return name, values
        if name is None and len(known) > 1:
            raise ValueError(f"say which record type, with `of_type`: {', '.join(known)}")
        found = [full for full in known if name in (None, full, full.rpartition(".")[2])]
        if len(found) != 1:
            names = [full.rpartition(".")[2] for full in known]
            raise ValueError(f"there is no one record type {name!r}{_instead(str(name), names)}")
        return found[0], known[found[0]].read(values)

    def columns(self, source: str, name: str | None) -> RecordType | None:
        """The columns of a record type as a schema has them, where there is one."""
        known = self.types.get(source) or self.types.get("") or {}
        found = [full for full in known if name in (None, full, full.rpartition(".")[2])]
        return known[found[0]].columns if len(found) == 1 else None

    def spelled(self, loaded: LoadedRule) -> LoadedRule:
        """A rule in SQL with its columns written out, as the job has it."""
        known = bool(self.types) and loaded.rule.query is not None
        return with_columns_of(loaded, self._records(loaded)) if known else loaded

    def _problems(self, loaded: LoadedRule) -> Iterator[Problem]:
        events = loaded.rule.events
        unknown = [name for name in events if self.names and name not in self.names]
        allowed = "inputs with a schema are " + ", ".join(self.names)
        for name in unknown:
            message = f"there is no schema of the input `{name}`"
            yield loaded.places.problem(message, ("events",), allowed=allowed)
        if not events and len(self.names) > 1:
            message = "the rule does not say which input it reads"
            yield loaded.places.problem(message, ("events",), allowed=allowed)
        elif not unknown:
            yield from type_check(loaded, self._records(loaded))

    def _records(self, loaded: LoadedRule) -> list[InputRecord]:
        """The record types that a rule may see."""
        several = len(self.types) > 1
        return [
            (f"input {name}" if several else "", record, schema.columns)
            for name in loaded.rule.events or self.types
            for record, schema in self.types[name].items()
        ]


def _types(schema: Schema) -> dict[str, EventSchema]:
    if isinstance(schema, Sequence):
        parsed_before = [each for each in schema if isinstance(each, AvroSchema)]
        if parsed_before:
            return {
                name: EventSchema(each) for each in parsed_before for name in record_names(each)
            }
    if isinstance(schema, str | PathLike):
        parsed = schema_of_file(Path(schema))
    else:
        node = dict(schema) if isinstance(schema, Mapping) else list(schema)
        parsed = parse(node, "the test's schema")
    return {name: EventSchema(record_schema(parsed, name)) for name in record_names(parsed)}


def _instead(name: str, known: Iterable[str]) -> str:
    names = list(known)
    meant = nearest(name, names)
    return f"; did you mean {meant!r}?" if meant else f": there are {', '.join(names)}"
