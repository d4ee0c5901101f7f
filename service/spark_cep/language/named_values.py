"""Names that stand in documents: of inputs, record types, steps, rules, columns and measures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from spark_cep.language.answers import NameKind
from spark_cep.language.documents import Language, OpenDocument
from spark_cep.language.places.names import record_names, step_names
from spark_cep.language.places.place import CursorPlace
from spark_cep.pattern.several_types import AnyRecord
from spark_cep.pattern.tree import Rule, walk


class NamedValue(NamedTuple):
    """A name that may stand at a place, and what it is in a few words."""

    label: str
    kind: NameKind
    detail: str = ""


def named_values(document: OpenDocument, place: CursorPlace) -> Iterator[NamedValue]:
    """The names that may be the value at a place."""
    path = place.cursor.path
    last = next((part for part in reversed(path) if isinstance(part, str)), None)
    if document.language is Language.SETTINGS:
        return
    if last in ("of_type", "record"):
        yield from _listed(record_names(document.records()), NameKind.VALUE, "record type")
    elif last == "input" or path[:1] == ("events",):
        yield from _listed(document.input_names, NameKind.VALUE, "input")
    elif last in ("skip_to_first", "skip_to_last"):
        yield from _listed(step_names(place.around), NameKind.STEP, "step")
    elif path[:2] == ("emit", "events") or last == "event_time":
        yield from _columns(document)
    elif _is_of_cases(document, place):
        yield from _of_cases(document, place, last)


def named_keys(document: OpenDocument, place: CursorPlace) -> Iterator[NamedValue]:
    """The names that may be keys of the mapping at a place of a test case."""
    if not _is_of_cases(document, place):
        return
    last = place.cursor.path[-1] if place.cursor.path else None
    if last == "send":
        yield from _columns(document)
    elif last == "steps":
        yield from _listed(_steps_of_cases(document, place), NameKind.STEP, "step")
    elif last in ("measures", "columns"):
        names = dict.fromkeys(name for rule in _rules(document) for name in _measures(rule))
        yield from _listed(names, NameKind.MEASURE, "measure")


def _is_of_cases(document: OpenDocument, place: CursorPlace) -> bool:
    return document.language is Language.CASES or place.cursor.path[:1] == ("cases",)


def _of_cases(document: OpenDocument, place: CursorPlace, last: str | None) -> Iterator[NamedValue]:
    if last == "rule":
        yield from _listed((rule.id for rule in _rules(document)), NameKind.RULE, "rule")
    elif last in ("step", "waits_for", "variable"):
        yield from _listed(_steps_of_cases(document, place), NameKind.STEP, "step")


def _rules(document: OpenDocument) -> list[Rule]:
    return [one.rule for one in document.rules]


def _steps_of_cases(document: OpenDocument, place: CursorPlace) -> list[str]:
    if document.language is not Language.CASES:
        return step_names(place.around)
    return list(dict.fromkeys(name for rule in _rules(document) for name in _steps(rule)))


def _steps(rule: Rule) -> list[str]:
    if rule.query is not None:
        return list(rule.query.variables)
    return [step.name for step in walk(rule.pattern) if step.group is None and not step.negative]


def _measures(rule: Rule) -> list[str]:
    if rule.query is not None:
        return [measure.name for measure in rule.query.measures]
    return list(rule.emit.measures)


def _columns(document: OpenDocument) -> Iterator[NamedValue]:
    for name, kind in AnyRecord.of(document.records()).fields.items():
        yield NamedValue(name, NameKind.COLUMN, str(kind))


def _listed(names: Iterable[str], kind: NameKind, what: str) -> Iterator[NamedValue]:
    for name in names:
        yield NamedValue(name, kind, what)
