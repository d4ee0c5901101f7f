"""Rule documents that are no text: mappings, lists and values of a Python program.

They are read as their JSON text would be, so they mean the same and are refused for the same
reasons, limits of size included. Durations may be ``timedelta``, instants ``datetime`` or ``date``.
What no document can hold (a function, ``None``, half a surrogate pair) is refused by its field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta

from spark_cep.documents.places import Path, Places
from spark_cep.documents.reading import MOST_DEPTH, MOST_OF_NUMBER, read_documents
from spark_cep.durations import format_duration
from spark_cep.errors import Problem, RuleSetError
from spark_cep.pattern.document.loading import LoadedRule, load_document

_MILLISECOND = timedelta(milliseconds=1)


def load_data(data: Mapping[str, object], source: str) -> LoadedRule:
    """The rule of a document that is no text; ``RuleSetError`` with all its problems.

    ``source`` names the document in messages, which name fields where those about a text name
    lines.
    """
    document = _Document(source)
    plain = document.plain(data, ())
    if document.problems:
        raise RuleSetError(document.problems)
    # DEL may stand in JSON as it is, and not in YAML.
    (read,) = read_documents(json.dumps(plain).replace("\x7f", "\\u007f"), source)
    problems = {
        path: replace(problem, span=None, excerpt=None) for path, problem in read.problems.items()
    }
    return load_document(replace(read, places=Places(source, ()), problems=problems))


def duration_text(value: str | timedelta) -> str:
    """A duration as the language writes it; text is left alone."""
    if isinstance(value, str):
        return value
    ms, rest = divmod(value, _MILLISECOND)
    # What is no duration is left for the reader to refuse.
    return format_duration(ms) if not rest and ms >= 0 else f"{value / _MILLISECOND:g} ms"


@dataclass(slots=True)
class _Document:
    """One document on its way to plain data, with what cannot be made plain."""

    source: str
    problems: list[Problem] = field(default_factory=list)
    _rule: str | None = None
    _steps: dict[Path, str] = field(default_factory=dict)

    def plain(self, value: object, path: Path) -> object:
        """``value`` as JSON can say it."""
        if len(path) > MOST_DEPTH and isinstance(value, Mapping | list | tuple):
            self._refuse("the document is too deep", path, f"at most {MOST_DEPTH} levels")
            return None
        match value:
            case Mapping():
                self._note_names(value, path)
                return {
                    str(name): self.plain(each, (*path, str(name))) for name, each in value.items()
                }
            case list() | tuple():
                return [self.plain(each, (*path, number)) for number, each in enumerate(value)]
            case timedelta():
                return duration_text(value)
            case date():
                return value.isoformat()
            case str():
                return self._text(value, path)
            case int() if abs(value) >= 10**MOST_OF_NUMBER:
                self._refuse("the number is too large", path, f"at most {MOST_OF_NUMBER:,} digits")
                return None
            case bool() | int() | float():
                return value
        self._refuse(
            f"{_kind(value)} cannot stand in a rule",
            path,
            "text, numbers, booleans, durations, instants, lists and mappings of them;"
            " conditions are SQL text",
        )
        return None

    def _note_names(self, mapping: Mapping[object, object], path: Path) -> None:
        if not path and isinstance(mapping.get("id"), str):
            self._rule = str(mapping["id"])
        if isinstance(mapping.get("step"), str):
            self._steps[path] = str(mapping["step"])

    def _text(self, text: str, path: Path) -> str:
        try:
            text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self._refuse("the text is not valid Unicode", path, "no half of a surrogate pair")
        return text

    def _refuse(self, message: str, path: Path, allowed: str) -> None:
        places = Places(self.source, (), steps=self._steps, rule=self._rule)
        self.problems.append(places.problem(message, path, allowed=allowed))


def _kind(value: object) -> str:
    return "`None`" if value is None else f"a value of type {type(value).__name__}"
