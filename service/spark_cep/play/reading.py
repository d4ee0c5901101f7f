"""Reads what a person has written: the rule, the schemas, and the table as a test case."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from spark_cep.cases.document.files import Suite
from spark_cep.cases.document.loading import Case, CaseFile
from spark_cep.cases.document.references import EventNames
from spark_cep.cases.document.shape import NOTHING, CaseShape
from spark_cep.codecs.avro.reader_schemas import record_names, record_schema
from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.documents.places import Mark, Places
from spark_cep.documents.places import Path as DocumentPath
from spark_cep.durations import format_duration
from spark_cep.errors import RuleSetError, SchemaError
from spark_cep.event_times import instant_text
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.document.shape_problems import document_problems, explainer
from spark_cep.pattern.several_types import InputRecord
from spark_cep.pattern.types import RecordType, SqlType, record_type
from spark_cep.play.cells import CellError, cell_value
from spark_cep.play.trial import MOST_ROWS, OF_ALL, RowKind, Trial, TrialRow
from spark_cep.play.view import TrialProblem
from spark_cep.rules.rule_set import RuleSet, assemble
from spark_cep.rules.sources.source import rule_file

_TABLE: Final = "the table"
_MOVES: Final = (RowKind.CLOCK, RowKind.WATERMARK)


@dataclass(frozen=True)
class Schemas:
    """The schemas of a trial. ``records``: each record by itself, by input, ``None`` for all of
    them; ``problems``: what cannot be read."""

    records: Mapping[str | None, list[AvroSchema]] = field(default_factory=dict)
    problems: tuple[TrialProblem, ...] = ()

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> Schemas:
        """The schemas of texts by input."""
        records: dict[str | None, list[AvroSchema]] = {}
        problems = []
        for name, text in texts.items():
            if not text.strip():
                continue
            try:
                parsed = parse(text, f"schema of {name}" if name else "schema")
                single = [record_schema(parsed, each) for each in record_names(parsed)]
                for each in single:
                    record_type(each.text)
            except SchemaError as error:
                problems.append(TrialProblem(str(error), field="schema"))
            else:
                records[name if name != OF_ALL else None] = single
        return cls(records, tuple(problems))

    @cached_property
    def types(self) -> Mapping[str | None, list[InputRecord]]:
        """The record types by input."""
        return {
            name: [
                (
                    "" if name is None else f"input {name}",
                    record_names(each)[0],
                    record_type(each.text),
                )
                for each in several
            ]
            for name, several in self.records.items()
        }

    def columns(self, input_name: str, of_type: str) -> Mapping[str, SqlType]:
        """The columns of the events of an input and record type, as far as they are known."""
        known = self.types.get(input_name or None) or self.types.get(None) or []
        if not input_name and not known and len(self.types) == 1:
            known = next(iter(self.types.values()))
        found: list[RecordType] = [
            columns
            for _, name, columns in known
            if of_type in ("", name, str(name).rpartition(".")[2])
        ]
        return found[0].fields if len(found) == 1 else {}


def rules_of(trial: Trial) -> RuleSet:
    """The rules of the text. RuleSetError with every problem."""
    file = rule_file(trial.text, trial.file)
    if file.problems:
        raise RuleSetError(file.problems)
    return assemble(file.loaded)


def chosen(trial: Trial, rules: RuleSet) -> LoadedRule | None:
    """The rule that is tried: the one that is named, or the first."""
    known = rules.by_id
    return known.get(trial.rule or "") or next(iter(known.values()), None)


def suite_of(trial: Trial, rule: LoadedRule, schemas: Schemas, case: Case) -> Suite:
    """The trial as a file with one case."""
    file = CaseFile(Path(trial.file), trial.text, (case,), rule.rule.id)
    return Suite(file, (rule,), dict(schemas.records))


def case_of(trial: Trial, schemas: Schemas) -> tuple[Case | None, list[TrialProblem]]:
    """The table as a test case that expects nothing; or what is wrong with it."""
    if len(trial.rows) > MOST_ROWS:
        message = f"the table has {len(trial.rows):,} rows, at most {MOST_ROWS:,} are run"
        longer = "spark-cep backtest runs files of any length"
        return None, [TrialProblem(message, help=longer)]
    steps, problems = [], list[TrialProblem]()
    for place, row in enumerate(trial.rows):
        try:
            steps.append(step_of(row, schemas.columns(row.input, row.of_type)))
        except _CellOfRowError as error:
            problems.append(TrialProblem(str(error), place, error.column, error.help))
    if problems:
        return None, problems
    places = _places(trial)
    data = {
        **head_of(trial),
        "start": instant_text(trial.start * 1_000),
        "events": steps,
        "expect": NOTHING,
    }
    try:
        shape = CaseShape.model_validate(data)
    except ValidationError as error:
        explained = explainer(CaseShape, {})
        found = document_problems(error, explained, places, ())
        return None, [
            TrialProblem(each.message, _row(path), _field(path), each.allowed)
            for path, each in found.items()
        ]
    names = EventNames.of(shape)
    for place, name in names.twice:
        message = f"there is an event `{name}` before"
        problems.append(TrialProblem(message, place, "name", "each name once"))
    return (None if problems else Case(shape, (), places, names)), problems


def head_of(trial: Trial) -> dict[str, Any]:
    """The keys of a trial's case but for `start`, `events` and `expect`."""
    found: dict[str, Any] = {"case": trial.case}
    if trial.allowed_disorder:
        found["allowed_disorder"] = format_duration(trial.allowed_disorder)
    if trial.event_time:
        found["event_time"] = trial.event_time
    return found


def step_of(row: TrialRow, columns: Mapping[str, SqlType]) -> dict[str, Any] | str:
    """A row as a step of a case. Raises an error that names the column."""
    if row.kind in (RowKind.RESTART, RowKind.FINISH):
        return row.kind.value
    if row.kind in _MOVES:
        return {row.kind.value: row.at}
    send: dict[str, Any] = {}
    for name, text in row.cells.items():
        if not text.strip():
            continue
        try:
            send[name] = cell_value(text, columns.get(name))
        except CellError as error:
            raise _CellOfRowError(name, f"`{name}`: {error}") from error
    step: dict[str, Any] = {"send": send}
    for key, value in (
        ("at", row.at), ("name", row.name), ("input", row.input), ("of_type", row.of_type)
    ):  # fmt: skip
        if value.strip():
            step[key] = value.strip()
    return step


class _CellOfRowError(ValueError):
    """A cell of a row cannot be read."""

    help = "a value as in YAML: a word, a number, true, 'text in quotes'"

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column


def _places(trial: Trial) -> Places:
    """Places in which the line of a step is its row."""
    lines = tuple(json.dumps(dict(row.cells)) for row in trial.rows) or ("",)
    marks: dict[DocumentPath, Mark] = {
        ("events", place): Mark(place, 0, place, 1) for place in range(len(trial.rows))
    }
    return Places(_TABLE, lines, values={(): Mark(0, 0, 0, 0), **marks})


def _row(path: Sequence[str | int]) -> int | None:
    return path[1] if len(path) > 1 and isinstance(path[1], int) else None


def _field(path: Sequence[str | int]) -> str | None:
    names = [part for part in path[2:] if isinstance(part, str)]
    return names[-1] if names else None
