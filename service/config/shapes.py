"""What stands where in the settings: sections, maps, lists, single values.

A thin reading of pydantic's field information, for those who walk settings next to the model: the
sources, the messages and the reference.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from service.config.quantities import PathMarker, Shown

FREE_KEY: Final = "<name>"
"""Stands for the free key of a map in a path."""


class Form(Enum):
    """The form of a value."""

    SECTION = "section"
    MAP = "map"
    LIST = "list"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Shape:
    """One place in the settings: its form, and what is known of it."""

    form: Form
    model: type[BaseModel] | None = None
    item: Any = None
    types: tuple[Any, ...] = ()
    choices: tuple[Any, ...] = ()
    nullable: bool = False
    marks: tuple[Any, ...] = field(default=())
    description: str = ""

    @property
    def textual(self) -> bool:
        """Whether the value is text, so that YAML's guesses (numbers, dates) do not apply."""
        texts = any(kind in (str, SecretStr, Path) for kind in self.types)
        return texts or any(isinstance(choice, str) for choice in self.choices)

    @property
    def located(self) -> bool:
        """Whether the value is a path that may be relative."""
        return Path in self.types or any(isinstance(mark, PathMarker) for mark in self.marks)

    @property
    def shown(self) -> Shown | None:
        """How the reference shows the type, where the type says so."""
        return next((mark for mark in self.marks if isinstance(mark, Shown)), None)

    def child(self, name: str) -> Shape | None:
        """What stands under ``name``: a setting of the section, a value of the map."""
        if self.form is Form.SECTION and self.model is not None:
            info = self.model.model_fields.get(name)
            return None if info is None else of_field(info)
        if self.form in (Form.MAP, Form.LIST):
            return of_annotation(self.item)
        return None


def of_field(info: FieldInfo) -> Shape:
    """The shape of a declared setting."""
    return of_annotation(info.annotation, tuple(info.metadata), info.description or "")


def of_annotation(annotation: Any, marks: tuple[Any, ...] = (), description: str = "") -> Shape:
    """The shape of a type."""
    members, all_marks = _members(annotation)
    marks = (*marks, *all_marks)
    nullable = type(None) in members
    kinds = [member for member in members if member is not type(None)]
    for kind in kinds:
        origin = get_origin(kind)
        if isinstance(kind, type) and origin is None and issubclass(kind, BaseModel):
            return Shape(
                Form.SECTION, kind, nullable=nullable, marks=marks, description=description
            )
        if origin in (dict, list):
            form = Form.MAP if origin is dict else Form.LIST
            item = get_args(kind)[-1]
            return Shape(form, None, item, nullable=nullable, marks=marks, description=description)
    return Shape(
        Form.VALUE,
        types=tuple(kind for kind in kinds if get_origin(kind) is not Literal),
        choices=tuple(c for kind in kinds if get_origin(kind) is Literal for c in get_args(kind)),
        nullable=nullable,
        marks=marks,
        description=description,
    )


def at_path(root: Shape, location: Sequence[int | str]) -> tuple[tuple[str, ...], Shape | None]:
    """Pydantic's location as a path of settings: tags of unions and keys are left out."""
    path: list[str] = []
    shape: Shape | None = root
    for part in location:
        if shape is None or shape.form is Form.VALUE or part == "[key]":
            break
        path.append(str(part))
        shape = shape.child(str(part))
    return tuple(path), shape


def names_below(root: Shape, path: Sequence[str]) -> list[str]:
    """The names of the settings of the section at ``path``."""
    shape: Shape | None = root
    for part in path:
        shape = None if shape is None else shape.child(part)
    return list(shape.model.model_fields) if shape is not None and shape.model else []


def _members(annotation: Any) -> tuple[list[Any], tuple[Any, ...]]:
    """The members of a union (or the one type), and all marks on the way to them."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *marks = get_args(annotation)
        inside, more = _members(inner)
        return inside, (*marks, *more)
    if origin in (Union, types.UnionType):
        members: list[Any] = []
        marks_found: list[Any] = []
        for member in get_args(annotation):
            kinds, more = _members(member)
            members += kinds
            marks_found += more
        return members, tuple(marks_found)
    return [annotation], ()


def walk(
    model: type[BaseModel], prefix: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], FieldInfo, Shape]]:
    """Every setting below a section, sections included; maps show their free key."""
    for name, info in model.model_fields.items():
        shape = of_field(info)
        path = (*prefix, name)
        yield path, info, shape
        if shape.model is not None:
            yield from walk(shape.model, path)
        elif shape.form is Form.MAP and (below := of_annotation(shape.item)).model is not None:
            yield from walk(below.model, (*path, FREE_KEY))
