"""Validation errors of pydantic as sentences about the document.

Each says which part is wrong and what was found there; what is allowed instead comes from the
model. Nothing of pydantic's own wording is shown.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, Literal

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from spark_cep.documents.nearest import instead
from spark_cep.documents.places import Path
from spark_cep.documents.shapes import Shape, at_location, shape_below
from spark_cep.errors import MOST_PROBLEMS

HIDDEN: Final = object()
"""Stands for a found value that messages must not show."""

_LONGEST: Final = 60
_ZONED: Final = "a date and time with its zone, such as 2026-01-31T12:00:00Z"
_EXPECTED: Final = {
    "bool_parsing": "`true` or `false`",
    "bool_type": "`true` or `false`",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number of at most 4,300 digits",
    "int_type": "a whole number",
    "string_type": "text",
    "path_type": "a path",
    "path_not_file": "an existing file",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "datetime_type": _ZONED,
    "datetime_parsing": _ZONED,
    "datetime_from_date_parsing": _ZONED,
    "timezone_aware": _ZONED,
}
_QUOTED: Final = "text; put quotes around what YAML takes for something else (yes, no, on, 1.0)"


@dataclass(frozen=True, slots=True)
class ModelFault:
    """One thing that is wrong at ``path``.

    ``allowed`` says what would have been right, if more is known than ``limit``: the choices or
    bounds of the field. ``description`` is the model's own sentence about the field.
    ``is_missing``: the part is not there at all.
    """

    path: Path
    message: str
    allowed: str | None = None
    limit: str | None = None
    description: str | None = None
    at: Literal["key", "value"] = "value"
    is_missing: bool = False


@dataclass(frozen=True)
class Explainer:
    """Explains the errors of one kind of document.

    Args:
        root: The shape of the document.
        name: A part's name in messages.
        noun: What the document's keys are called.
        shown: The value as it may be shown; ``HIDDEN`` for a secret.
        elsewhere: Help for keys that people look for where they do not stand.
    """

    root: Shape
    name: Callable[[Path], str]
    noun: str = "key"
    shown: Callable[[Path, Any], Any] = lambda _, value: value
    elsewhere: Mapping[tuple[type[BaseModel], str], str] = field(
        default_factory=lambda: MappingProxyType({})
    )

    def faults(self, error: ValidationError) -> list[ModelFault]:
        """Return the faults in pydantic's order; errors of several members of a union about one
        part are one fault."""
        faults: dict[Path, ModelFault] = {}
        for detail in islice(error.errors(include_url=False), MOST_PROBLEMS):
            for fault in self._faults(detail):
                before = faults.setdefault(fault.path, fault)
                choices = dict.fromkeys(filter(None, (before.limit, fault.limit)))
                faults[fault.path] = replace(before, limit=", or ".join(choices) or None)
        return list(faults.values())

    def _faults(self, detail: ErrorDetails) -> Iterator[ModelFault]:
        kind, context = detail["type"], detail.get("ctx", {})
        unknown = kind == "extra_forbidden"
        path, shape = at_location(self.root, detail["loc"], unknown=unknown)
        if unknown:
            yield ModelFault(
                path, f"unknown {self.noun} {self.name(path)}", self._keys(path), at="key"
            )
        elif kind == "missing":
            for needed, about in _required(shape, path):
                message = f"{self.name(needed)} is missing"
                yield ModelFault(needed, message, about, is_missing=True)
        elif kind == "contradiction":
            path = (*path, *context["at"].split(".")) if context["at"] else path
            sentence = f"{self.name(path)}: {context['sentence']}"
            yield ModelFault(path, sentence, description=shape.description if shape else None)
        else:
            yield self._wrong_value(detail, path, shape)

    def _keys(self, path: Path) -> str:
        around = shape_below(self.root, path[:-1])
        model = around.model if around is not None else None
        names = list(model.model_fields) if model is not None else []
        hint = self.elsewhere.get((model, str(path[-1]))) if model is not None else None
        if hint is not None:
            return f"{hint}; {self.noun}s here: {', '.join(names)}"
        return instead(str(path[-1]), names, f"{self.noun}s")

    def _wrong_value(self, detail: ErrorDetails, path: Path, shape: Shape | None) -> ModelFault:
        kind, context, name = detail["type"], detail.get("ctx", {}), self.name(path)
        value = self.shown(path, detail["input"])
        message = f"{name} cannot be {_plain(value)}"
        allowed: str | None = None
        limit: str | None = None
        if kind in _EXPECTED:
            message = f"{name} must be {_EXPECTED[kind]}, found {_typed(value)}"
            if kind == "string_type" and isinstance(value, bool | int | float | date):
                allowed = _QUOTED
            elif kind == "list_type":
                allowed = _as_list(value)
        elif kind == "refused":
            allowed = context["allowed"]
            if context["wrong"]:
                message = f"{name}: {_plain(value)} {context['wrong']}"
        elif kind in ("too_short", "string_too_short"):
            message = f"{name} is empty"
        elif kind in ("too_long", "string_too_long"):
            message, limit = f"{name} is too long", f"at most {context['max_length']}"
        elif kind == "literal_error":
            limit = context["expected"].replace("'", "`")
        else:
            limit = _bounds(shape, context)
        return ModelFault(path, message, allowed, limit, shape.description if shape else None)


def _required(shape: Shape | None, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the required fields of a missing part: those of a section that have no default."""
    if shape is None or shape.model is None:
        yield path, shape.description if shape else ""
        return
    for name, info in shape.model.model_fields.items():
        if info.is_required():
            yield from _required(shape.child(name), (*path, name))


def _bounds(shape: Shape | None, context: Mapping[str, Any]) -> str | None:
    """Describe the allowed numbers by all bounds of the field."""
    bounds = {name: context[name] for name in ("ge", "gt", "le", "lt") if name in context}
    for mark in shape.marks if shape is not None else ():
        for name in ("ge", "gt", "le", "lt"):
            if getattr(mark, name, None) is not None:
                bounds[name] = getattr(mark, name)
    if "ge" in bounds and "le" in bounds:
        return f"from {bounds['ge']} to {bounds['le']}"
    words = {"ge": "{} or more", "gt": "more than {}", "le": "at most {}", "lt": "less than {}"}
    limits = [text.format(bounds[name]) for name, text in words.items() if name in bounds]
    return " and ".join(limits) or None


def _plain(value: object) -> str:
    if value is HIDDEN:
        return "a value that is not shown"
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{textwrap.shorten(text, _LONGEST, placeholder=' ...')}`"


def _as_list(value: object) -> str | None:
    """The value as the list that was meant."""
    if isinstance(value, Mapping):
        return "a list: `- ` before the first key of each item"
    if value is None or value is HIDDEN or isinstance(value, list | tuple):
        return None
    return f"a list, also of one: `[{_plain(value).strip('`')}]`"


def _typed(value: object) -> str:
    """The value with its type, where the type is what is wrong."""
    if isinstance(value, bool):
        return f"the boolean {_plain(value)}"
    if isinstance(value, int | float):
        return f"the number {_plain(value)}"
    return f"the date {_plain(value)}" if isinstance(value, date) else _plain(value)
