"""Every setting of a job with its value and the place where it was given, for
``spark-cep config show``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from spark_cep.config import GivenSettings
from spark_cep.config.redaction import MASK, names_a_secret, redact, without_login
from spark_cep.config.settings import ROOT
from spark_cep.config.sources import Origin
from spark_cep.documents.places import Path as SettingPath
from spark_cep.documents.shapes import Form, Shape


@dataclass(frozen=True, slots=True)
class ShownSetting:
    """A setting by its ``name``, its ``value`` as it would be written in the file, and its
    ``origin``; ``None`` for a default."""

    name: str
    value: Any
    origin: Origin | None

    @property
    def text(self) -> str:
        """The value in YAML's flow style, which JSON is a part of."""
        if isinstance(self.value, str) and self.value.isprintable():
            return self.value or '""'
        return json.dumps(self.value, ensure_ascii=False)

    @property
    def place(self) -> str:
        """The origin in words."""
        if self.origin is None:
            return "default"
        span = self.origin.span
        return self.origin.source if span is None else f"{self.origin.source}:{span.line}"

    def as_data(self) -> dict[str, Any]:
        """The setting for programs."""
        span = None if self.origin is None else self.origin.span
        return {
            "setting": self.name,
            "value": self.value,
            "given": self.origin is not None,
            "source": "default" if self.origin is None else self.origin.source,
            "line": None if span is None else span.line,
        }


def shown_settings(given: GivenSettings) -> list[ShownSetting]:
    """All settings, in the order of the reference. Secrets are masked, and so is what came from
    another file or variable."""
    written = given.settings.model_dump(mode="json")
    return list(_below((), ROOT, given.settings, written, given.origins))


def _below(
    path: SettingPath,
    shape: Shape,
    value: Any,
    written: Any,
    origins: Mapping[SettingPath, Origin],
) -> Iterator[ShownSetting]:
    """Yield the settings at ``path`` and below: of ``value`` as the model has it, ``written`` as a
    file would."""
    names = _names(shape, value)
    if not names:
        origin = origins.get(path)
        yield ShownSetting(".".join(map(str, path)), _masked(path, written, origin), origin)
    for name in names:
        inner = shape.child(name)
        assert inner is not None
        child = getattr(value, name) if isinstance(value, BaseModel) else value[name]
        yield from _below((*path, name), inner, child, written[name], origins)


def _names(shape: Shape, value: Any) -> Sequence[str]:
    """The names of what stands below; none for a single value, a list, and what is empty."""
    if isinstance(value, BaseModel):
        return list(type(value).model_fields)
    if shape.form is Form.MAP and isinstance(value, dict):
        return list(value)
    return []


def _masked(path: SettingPath, written: Any, origin: Origin | None) -> Any:
    if not written:
        return written
    if (origin is not None and origin.hidden) or names_a_secret(str(path[-1])):
        return MASK
    if isinstance(written, str) and "://" in written:
        written = without_login(written)
    return redact(written)
