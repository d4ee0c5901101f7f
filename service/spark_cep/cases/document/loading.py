"""Reads test cases: the text of a case file or of a rule file in, cases with their places out, or
every problem of the text at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from spark_cep.cases.document.references import EventNames, check_references, check_steps
from spark_cep.cases.document.shape import CaseFileShape, CaseShape, CasesInRule
from spark_cep.documents.nearest import instead
from spark_cep.documents.places import Path as DocumentPath
from spark_cep.documents.places import Places
from spark_cep.documents.reading import UNREADABLE, Document, read_documents
from spark_cep.errors import ConfigurationError, Problem
from spark_cep.pattern.document.loading import CASES, LoadedRule
from spark_cep.pattern.document.shape import DocumentShape
from spark_cep.pattern.document.shape_problems import document_problems, explainer
from spark_cep.pattern.document.sql_file import SUFFIX as SQL_SUFFIX
from spark_cep.pattern.document.sql_file import read_sql_file
from spark_cep.pattern.tree import Rule, walk
from spark_cep.rules.sources.folder import has_cases, shown_name

_Root = TypeVar("_Root", bound=DocumentShape)
#: Keys whose values are text, whatever YAML takes them for.
_TEXT: Final = frozenset({"case", "name", "rule", "input", "of_type", "event_time"})
_ELSEWHERE: Final[Mapping[tuple[type[Any], str], str]] = {
    (CaseFileShape, "schema"): "`schemas` for the schema files of the events",
    (CaseFileShape, "rule"): "`rules` for the rule file; `rule` in a case for the id of one",
    (CaseFileShape, "tests"): "`cases` for the list of cases",
    (CaseShape, "name"): "`case` for the case's name",
    (CaseShape, "matches"): "`matches` inside `expect`",
}


@dataclass(frozen=True)
class Case:
    """One case: its shape, its ``path`` in its document, and where that stands."""

    shape: CaseShape
    path: DocumentPath
    places: Places
    names: EventNames

    @property
    def name(self) -> str:
        """The case's name."""
        return self.shape.case

    @property
    def place(self) -> str:
        """Return file and line."""
        return self.places.place((*self.path, "case"))

    def problem(self, message: str, *below: str | int, allowed: str | None = None) -> Problem:
        """A problem at a part of the case."""
        return self.places.problem(message, (*self.path, *below), allowed=allowed)


@dataclass(frozen=True)
class CaseFile:
    """The cases of a file. ``rule``: the id of the rule in whose document they stand. ``rules`` and
    ``schemas`` are the files that a case file names, by the name of their input (or ``None``)."""

    path: Path
    text: str
    cases: tuple[Case, ...]
    rule: str | None = None
    rules: tuple[Path, ...] = ()
    schemas: Mapping[str | None, Path] = field(default_factory=dict)


def read_file(path: Path) -> list[CaseFile]:
    """The cases of a file, of each of its documents by themselves; none where a rule file has none.

    Raises ConfigurationError with every problem found.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise ConfigurationError(f"{path}: cannot be read: {why}") from error
    return read_text(path, text)


def read_text(path: Path, text: str) -> list[CaseFile]:
    """The cases in the text of a file: see :func:`read_file`."""
    source = shown_name(path)
    files, problems = examine_cases(path, text)
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise ConfigurationError(f"{source}: {count}", problems)
    return files


def examine_cases(path: Path, text: str) -> tuple[list[CaseFile], list[Problem]]:
    """The cases of a file's text, and all its problems; see :func:`read_file`."""
    examine = _case_file if has_cases(path) else _rule_file
    files, problems = examine(path, text, shown_name(path))
    return files, [*problems, *_twice(files)]


def _case_file(path: Path, text: str, source: str) -> tuple[list[CaseFile], list[Problem]]:
    documents = read_documents(text, source, is_text=lambda at, _: _is_text(at))
    if not documents:
        empty = Places(source, ("",)).problem("there is no case", (), allowed="`cases:`, a list")
        return [], [empty]
    files, problems = [], list[Problem]()
    for document in documents:
        shape, wrong = _shape(document, CaseFileShape)
        problems += wrong
        if shape is None:
            continue
        cases, wrong = _cases(shape.cases, document.places)
        problems += wrong
        rules = shape.rules if isinstance(shape.rules, list) else [shape.rules or ""]
        schemas = shape.schemas if isinstance(shape.schemas, dict) else {None: shape.schemas}
        files.append(
            CaseFile(
                path,
                text,
                tuple(_with_event_time(each, shape.event_time) for each in cases),
                None,
                tuple(path.parent / name for name in rules if name),
                {name: path.parent / file for name, file in schemas.items() if file},
            )
        )
    return files, problems


def _rule_file(path: Path, text: str, source: str) -> tuple[list[CaseFile], list[Problem]]:
    in_sql = path.suffix.lower() == SQL_SUFFIX
    documents = [read_sql_file(text, source)] if in_sql else read_documents(text, source)
    files, problems = [], list[Problem]()
    for document in documents:
        data = document.data
        if not isinstance(data, dict) or CASES not in data:
            continue
        # What is wrong with the rule itself is said where the rule is read.
        mine = {at: problem for at, problem in document.problems.items() if at[:1] == (CASES,)}
        only = Document({CASES: data[CASES]}, document.places, mine)
        shape, wrong = _shape(only, CasesInRule)
        problems += wrong
        if shape is not None:
            cases, wrong = _cases(shape.cases, document.places)
            problems += wrong
            files.append(CaseFile(path, text, tuple(cases), str(data.get("id")), (path,)))
    return files, problems


def _is_text(path: DocumentPath) -> bool:
    # Not columns, which may have such names.
    return bool(path) and path[-1] in _TEXT and "send" not in path and "measures" not in path


def _shape(document: Document, kind: type[_Root]) -> tuple[_Root | None, list[Problem]]:
    """The document's shape; ``None`` where it has none, for which there are problems."""
    problems = dict(document.problems)
    if not isinstance(document.data, dict):
        if document.data is not UNREADABLE and not problems:
            message = "a case file must be a mapping"
            problems[()] = document.places.problem(message, (), allowed="`cases:`, a list of cases")
        return None, list(problems.values())
    try:
        shape = kind.model_validate(document.data)
    except ValidationError as error:
        explained = explainer(kind, _ELSEWHERE)
        problems |= document_problems(error, explained, document.places, problems)
        shape = None
    return (None if problems else shape), list(problems.values())


def _cases(shapes: Sequence[CaseShape], places: Places) -> tuple[list[Case], list[Problem]]:
    cases, problems = [], list[Problem]()
    for number, shape in enumerate(shapes):
        case = Case(shape, (CASES, number), places, EventNames.of(shape))
        cases.append(case)
        problems += _wrong_names(case)
        problems += (
            case.problem(message, *below, allowed=allowed)
            for message, below, allowed in check_references(shape, case.names)
        )
    return cases, problems


def _wrong_names(case: Case) -> Iterator[Problem]:
    for number, name in case.names.twice:
        message = f"there is an event `{name}` before"
        yield case.problem(message, "events", number, "name", allowed="each name once")


def _twice(files: Iterable[CaseFile]) -> list[Problem]:
    """The problems of names that two cases of a file have."""
    known: set[tuple[str | None, str]] = set()
    problems = []
    for file in files:
        for case in file.cases:
            if (file.rule, case.name) in known:
                message = f"there is a case `{case.name}` before"
                problems.append(case.problem(message, "case", allowed="each name once"))
            known.add((file.rule, case.name))
    return problems


def _with_event_time(case: Case, column: str | None) -> Case:
    if column is None or case.shape.event_time is not None:
        return case
    shape = case.shape.model_copy(update={"event_time": column})
    return Case(shape, case.path, case.places, case.names)


def unknown_names(case: Case, rules: Sequence[LoadedRule]) -> Iterator[Problem]:
    """Problems of rules and steps that a case names and that there are not."""
    known = [one.rule.id for one in rules]
    if case.shape.rule is not None and case.shape.rule not in known:
        allowed = instead(case.shape.rule, known, "rules")
        yield case.problem(f"there is no rule `{case.shape.rule}`", "rule", allowed=allowed)
        return
    mine = (one.rule for one in rules if case.shape.rule in (None, one.rule.id))
    steps = {rule.id: _steps(rule) for rule in mine}
    for message, below, help_ in check_steps(case.shape, steps):
        yield case.problem(message, *below, allowed=help_)


def _steps(rule: Rule) -> list[str]:
    """The steps of a rule that take events."""
    if rule.query is not None:
        return list(rule.query.variables)
    return [step.name for step in walk(rule.pattern) if step.group is None and not step.negative]
