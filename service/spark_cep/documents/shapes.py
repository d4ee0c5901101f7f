"""The shape of a document: sections, maps, lists, single values.

A thin reading of pydantic's field information, for those who walk a document next to its model:
the reading of settings, the messages about mistakes and the reference.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from spark_cep.documents.places import Path

FREE_KEY: Final = "<name>"
"""Stands for the free key of a map in a path."""

TAGS: Final = ("<one>", "<many>", "<mapping>")
"""What the members of a union may be tagged with: pydantic's locations name them, paths do not."""


class Form(Enum):
    """The form of a value."""

    SECTION = "section"
    MAP = "map"
    LIST = "list"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Shape:
    """One place in a document: its form, and what is known of it."""

    form: Form
    model: type[BaseModel] | None = None
    item: Any = None
    types: tuple[Any, ...] = ()
    choices: tuple[Any, ...] = ()
    nullable: bool = False
    marks: tuple[Any, ...] = field(default=())
    description: str = ""

    def child(self, name: str | int) -> Shape | None:
        """Return the shape of a field of the section, or of a value of the map or list."""
        if self.form is Form.SECTION and self.model is not None:
            info = self.model.model_fields.get(str(name))
            return None if info is None else of_field(info)
        if self.form in (Form.MAP, Form.LIST):
            return of_annotation(self.item, description=self.description)
        return None


def of_field(info: FieldInfo) -> Shape:
    """The shape of a declared field."""
    return of_annotation(info.annotation, tuple(info.metadata), info.description or "")


def of_annotation(annotation: Any, marks: tuple[Any, ...] = (), description: str = "") -> Shape:
    """The shape of a type; what stands in a map or list is described as the whole is."""
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


def at_location(
    root: Shape, location: Sequence[int | str], *, unknown: bool
) -> tuple[Path, Shape | None]:
    """Pydantic's location as a path in the document, and what stands there.

    ``unknown``: it ends in a key that the model does not know, which may be called like a tag.
    """
    path: list[int | str] = []
    shape: Shape | None = root
    for number, part in enumerate(location, 1):
        if shape is None or shape.form is Form.VALUE or part == "[key]":
            break
        is_key = shape.form is Form.MAP or (unknown and number == len(location))
        if part not in TAGS or is_key:
            path.append(part if shape.form is Form.LIST else str(part))
            shape = shape.child(part)
    return tuple(path), shape


def shape_below(root: Shape, path: Path) -> Shape | None:
    """Return the shape of the part at ``path``."""
    shape: Shape | None = root
    for part in path:
        shape = None if shape is None else shape.child(part)
    return shape


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
    """Every field below a section, sections included; maps show their free key."""
    for name, info in model.model_fields.items():
        shape = of_field(info)
        path = (*prefix, name)
        yield path, info, shape
        if shape.model is not None:
            yield from walk(shape.model, path)
        elif shape.form is Form.MAP and (item := of_annotation(shape.item)).model is not None:
            yield from walk(item.model, (*path, FREE_KEY))
