"""Turns what pydantic says about a document into problems that underline the place."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Mapping
from datetime import date
from typing import Final

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from service.errors import Problem
from service.pattern.places import Path, RulePlaces
from service.pattern.shape import (
    EmitShape,
    LimitsShape,
    RuleShape,
    SkipToShape,
    StepShape,
    WithinShape,
)

_LONGEST_EXCERPT: Final = 60

_NESTED: Final[Mapping[str, type[BaseModel]]] = {
    "pattern": StepShape,
    "group": StepShape,
    "within": WithinShape,
    "after_match": SkipToShape,
    "emit": EmitShape,
    "limits": LimitsShape,
}

_ELSEWHERE: Final[Mapping[tuple[type[BaseModel], str], str]] = {
    (StepShape, "within"): "`within` on the rule, for the whole pattern; on a step that repeats,"
    " `gap` limits the time between two repetitions",
    (StepShape, "after_match"): "`after_match` on the rule, for the whole pattern",
    (StepShape, "name"): "`step` for the step's name",
    (StepShape, "or"): "`where` with SQL's OR",
    (StepShape, "not"): "`after: not_next` or `after: not_followed_by`",
    (RuleShape, "name"): "`id` for the rule's name",
    (RuleShape, "steps"): "`pattern` for the list of steps",
    (RuleShape, "measures"): "`measures` inside `emit`",
}
"""Keys that people look for where they do not stand, and where to go instead."""


#: Of alternatives, in the places of problems; no part of the document.
_TAGS = ("<one>", "<many>", "<mapping>")


def shape_problems(error: ValidationError, places: RulePlaces) -> list[Problem]:
    """One problem for each thing that pydantic found, in its order."""
    details = error.errors(include_url=False)
    return [_problem(detail, places) for detail in details if not _is_said(detail)]


def _is_said(detail: ErrorDetails) -> bool:
    # A key without a value was noticed when the text was read.
    found_nothing = detail["type"] != "missing" and detail["input"] is None
    return found_nothing and isinstance(detail["loc"][-1], str)


def _problem(detail: ErrorDetails, places: RulePlaces) -> Problem:
    # An unknown key may be called like a tag.
    unknown = len(detail["loc"]) - 1 if detail["type"] == "extra_forbidden" else -1
    path: Path = tuple(
        part for n, part in enumerate(detail["loc"]) if part not in _TAGS or n == unknown
    )
    name = next((str(part) for part in reversed(path) if isinstance(part, str)), "the document")
    model, field = _described(path)
    if detail["type"] == "extra_forbidden":
        message = f"unknown key `{path[-1]}`"
        return places.problem(message, path, allowed=_known_keys(model, str(path[-1])), at="key")
    allowed = field.description if field is not None else None
    if detail["type"] == "missing":
        return places.problem(f"`{name}` is missing", path[:-1], allowed=f"`{name}`: {allowed}")
    label = f"an item of `{name}`" if path and isinstance(path[-1], int) else f"`{name}`"
    message, hint = _sentence(detail, label)
    return places.problem(message, path, allowed=hint or allowed)


def _described(path: Path) -> tuple[type[BaseModel], FieldInfo | None]:
    """The model that the path's last key belongs to, and the key's field in it if it has one."""
    model: type[BaseModel] = RuleShape
    field: FieldInfo | None = None
    above: str | None = None
    for name in (part for part in path if isinstance(part, str)):
        if above is not None:
            nested = _NESTED.get(above)
            if nested is None:
                break  # the name of a measure
            model = nested
        field, above = model.model_fields.get(name), name
    return model, field


def _known_keys(model: type[BaseModel], unknown: str) -> str:
    known = list(model.model_fields)
    keys = "keys here are " + ", ".join(known)
    elsewhere = _ELSEWHERE.get((model, unknown))
    if elsewhere is not None:
        return f"{elsewhere}; {keys}"
    nearest = difflib.get_close_matches(unknown.lower(), known, n=1, cutoff=0.6)
    return f"`{nearest[0]}`, which is the nearest; {keys}" if nearest else keys


def _sentence(detail: ErrorDetails, label: str) -> tuple[str, str | None]:
    """What is wrong, and a better hint than the field's description where there is one."""
    kind, found = detail["type"], detail["input"]
    expected = {
        "string_type": "text",
        "int_type": "a whole number",
        "bool_type": "`true` or `false`",
        "list_type": "a list",
        "model_type": "a mapping",
        "dict_type": "a mapping",
    }.get(kind)
    if expected is not None:
        hint = None
        if kind == "string_type" and isinstance(found, bool | int | float | date):
            hint = "text; put quotes around what YAML takes for something else (yes, no, on, 1.0)"
        return f"{label} must be {expected}, found {_kind(found)}", hint
    if kind in ("too_short", "string_too_short"):
        return f"{label} is empty", None
    if kind == "literal_error":
        return f"{label} cannot be {_kind(found)}", None
    if kind == "greater_than_equal":
        return f"{label} is {found}", None
    if kind in ("duration", "instant", "times"):
        return f"{label}: {detail['msg']}", None
    return detail["msg"], None


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return f"the boolean `{str(value).lower()}`"
    if isinstance(value, int | float):
        return f"the number `{value}`"
    if isinstance(value, date):
        return f"the date `{value}`"
    if isinstance(value, str):
        return f"`{textwrap.shorten(value, _LONGEST_EXCERPT, placeholder=' ...')}`"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    return "a mapping"
