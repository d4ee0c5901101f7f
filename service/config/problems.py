"""What is wrong with a configuration, as text: place, setting, what was found, what is allowed.

Values of secret settings, and values that came from a file or variable, are never shown.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import SecretStr, ValidationError
from pydantic_core import ErrorDetails

from service.config.redaction import names_a_secret, redact_text
from service.config.shapes import Shape, at_path, names_below

SettingPath = tuple[str, ...]

_LONGEST: Final = 80
_PHRASES: Final = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "a text",
    "dict_type": "a map",
    "model_type": "a map",
    "model_attributes_type": "a map",
    "list_type": "a list",
    "path_type": "a path",
    "path_not_file": "an existing file",
    "datetime_parsing": "a date and time with its zone, as 2026-01-31T12:00:00Z",
    "datetime_from_date_parsing": "a date and time with its zone, as 2026-01-31T12:00:00Z",
    "string_too_short": "a text that is not empty",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was given. ``hidden``: its text came from elsewhere and is not shown."""

    file: str
    line: int | None = None
    hidden: bool = False

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """One thing that is wrong with one setting."""

    origin: Origin
    setting: SettingPath
    message: str
    allowed: str = ""

    def __str__(self) -> str:
        name = f"{'.'.join(self.setting)}: " if self.setting else ""
        allowed = f"; allowed: {self.allowed}" if self.allowed else ""
        return f"{self.origin}: {name}{self.message}{allowed}"


def unknown(path: SettingPath, origin: Origin, allowed: Iterable[str]) -> SettingProblem:
    """The problem of a setting that does not exist, with the nearest that does."""
    names = sorted(allowed)
    near = difflib.get_close_matches(path[-1].lower(), names, n=1, cutoff=0.5)
    hint = f", did you mean {near[0]}?" if near else ""
    return SettingProblem(origin, path, f"unknown setting{hint}", ", ".join(names))


def describe(
    error: ValidationError, root: Shape, origins: Mapping[SettingPath, Origin], nowhere: Origin
) -> list[SettingProblem]:
    """One problem a setting out of pydantic's findings, in no particular order."""
    found: dict[SettingPath, list[SettingProblem]] = {}
    for detail in error.errors(include_url=False):
        for problem in _described(detail, root, origins, nowhere):
            found.setdefault(problem.setting, []).append(problem)
    return [_joined(problems) for problems in found.values()]


def _described(
    detail: ErrorDetails,
    root: Shape,
    origins: Mapping[SettingPath, Origin],
    nowhere: Origin,
) -> Iterator[SettingProblem]:
    kind, context = detail["type"], detail.get("ctx", {})
    path, shape = at_path(root, detail["loc"])
    origin = origin_of(path, origins, nowhere)
    if kind == "extra_forbidden":
        yield unknown(path, origin, names_below(root, path[:-1]))
    elif kind == "missing":
        for needed, description in _required(shape, path):
            yield SettingProblem(origin, needed, f"missing, and needed: {description}")
    elif kind == "contradiction":
        path = (*path, *context["at"].split(".")) if context["at"] else path
        yield SettingProblem(origin_of(path, origins, nowhere), path, context["sentence"])
    else:
        shown = _found(detail["input"], path, origin)
        yield SettingProblem(origin, path, f"found {shown}", _allowed(kind, context, detail["msg"]))


def _required(shape: Shape | None, path: SettingPath) -> Iterator[tuple[SettingPath, str]]:
    """What must be given of something that is missing: of a section, what has no default."""
    if shape is None or shape.model is None:
        yield path, shape.description if shape else ""
        return
    for name, info in shape.model.model_fields.items():
        if info.is_required():
            yield from _required(shape.child(name), (*path, name))


def origin_of(path: SettingPath, origins: Mapping[SettingPath, Origin], nowhere: Origin) -> Origin:
    """Where the setting was given, or else the nearest section around it."""
    for length in range(len(path), -1, -1):
        if path[:length] in origins:
            return origins[path[:length]]
    return nowhere


def _found(value: Any, path: SettingPath, origin: Origin) -> str:
    if isinstance(value, Mapping):
        return "a map"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    if origin.hidden or isinstance(value, SecretStr) or names_a_secret(path[-1] if path else ""):
        return "a value that is not shown"
    text = repr(redact_text(value)) if isinstance(value, str) else str(value).lower()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…'"


def _allowed(kind: str, context: Mapping[str, Any], message: str) -> str:
    if kind in _PHRASES:
        return _PHRASES[kind]
    if kind == "allowed":
        return str(context["allowed"])
    if kind == "literal_error":
        return str(context["expected"]).replace("'", "")
    for bound, phrase in (("ge", "and more"), ("le", "at most"), ("gt", "more than")):
        if bound in context:
            limit = context[bound]
            return f"{limit} {phrase}" if bound == "ge" else f"{phrase} {limit}"
    return message[:1].lower() + message[1:]


def _joined(problems: Sequence[SettingProblem]) -> SettingProblem:
    """The findings of the members of a union are one problem."""
    first = problems[0]
    allowed = list(dict.fromkeys(problem.allowed for problem in problems if problem.allowed))
    messages = list(dict.fromkeys(problem.message for problem in problems))
    return SettingProblem(first.origin, first.setting, "; ".join(messages), ", or ".join(allowed))
