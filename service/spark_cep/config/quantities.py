"""The types of single settings: durations, sizes, property maps, and how the reference shows them.

A setting is declared with :func:`setting`, which insists on a description; the unit comes from the
type (durations, sizes) or from the declaration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    WithJsonSchema,
)
from pydantic.config import JsonDict

from spark_cep import durations
from spark_cep.config.redaction import names_a_secret
from spark_cep.documents.values import contradiction, duration, refused
from spark_cep.durations import format_duration

SIZE_ALLOWED: Final = "a whole number and a unit, one of B, KiB, MiB, GiB, kB, MB, GB (64 MiB)"
_SIZE: Final = re.compile(r"\s*([0-9]{1,15})\s*([A-Za-z]+)\s*")
_SIZE_UNITS: Final = {
    "b": 1,
    "bytes": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}


@dataclass(frozen=True, slots=True)
class Shown:
    """The name and unit by which the reference shows a type."""

    type: str
    unit: str = ""


class PathMarker:
    """Marks a text that names a place: relative ones start at the configuration file's folder."""


class SettingsSection(BaseModel):
    """Base of all sections: immutable, and unknown settings are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def setting(default: Any, description: str, unit: str = "", **limits: Any) -> Any:
    """A documented setting; with ``...`` as its default it is required."""
    extra: JsonDict | None = {"x-unit": unit} if unit else None
    return Field(default, description=description, json_schema_extra=extra, **limits)


def check_pair(section: SettingsSection, one: str, other: str) -> None:
    """Raise the error of a section that has one of two settings that go together."""
    if (getattr(section, one) is None) != (getattr(section, other) is None):
        raise contradiction(f"{one} and {other} go together", one)


def _above_zero(value: int) -> int:
    if value <= 0:
        raise refused("more than 0 ms")
    return value


def parse_size(text: str) -> int:
    """The bytes that ``text`` names, as ``64 MiB``; ``ValueError`` says what is allowed instead."""
    found = _SIZE.fullmatch(text)
    factor = _SIZE_UNITS.get(found.group(2).lower()) if found else None
    if found is None or factor is None:
        raise ValueError(f"{text!r} is not a size: allowed is {SIZE_ALLOWED}")
    return int(found.group(1)) * factor


def format_size(size: int) -> str:
    """The size as text, in the largest binary unit that gives a whole number."""
    for factor, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"


def _size(value: Any) -> int:
    if not isinstance(value, str):
        raise refused(SIZE_ALLOWED)
    try:
        return parse_size(value)
    except ValueError:
        raise refused(SIZE_ALLOWED) from None


def _property(value: Any) -> Any:
    """A property's value as the text that a Java or C client expects."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str | SecretStr):
        return value
    raise refused("a text, number or boolean")


def _hide(properties: Mapping[str, str | SecretStr]) -> dict[str, str | SecretStr]:
    return {
        name: SecretStr(value) if isinstance(value, str) and names_a_secret(name) else value
        for name, value in properties.items()
    }


def url_parts(url: str, allowed: str) -> SplitResult:
    """The parts of a URL without credentials; refuses what is none."""
    if "@" in url:
        raise refused("a URL without credentials; they have settings of their own")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise refused(allowed, "is not a URL") from None
    return parts


def reveal(value: str | SecretStr) -> str:
    """The text itself, to hand to a client and to nobody else."""
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def revealed(properties: Mapping[str, str | SecretStr]) -> dict[str, str]:
    """Properties with the texts of those that are secret."""
    return {name: reveal(value) for name, value in properties.items()}


_DURATION_SCHEMA: Final = {
    "type": "string",
    "pattern": durations.PATTERN,
    "examples": ["10 seconds", "500 ms", "5 minutes"],
}
_POSITIVE_SCHEMA: Final = {**_DURATION_SCHEMA, "allOf": [{"pattern": "[1-9]"}]}
_SIZE_SCHEMA: Final = {
    "type": "string",
    "pattern": rf"^\s*[0-9]{{1,15}}\s*(?i:{'|'.join(_SIZE_UNITS)})\s*$",
    "examples": ["64 MiB", "1 GiB"],
}

Duration = Annotated[
    int,
    BeforeValidator(duration),
    PlainSerializer(format_duration, return_type=str, when_used="json-unless-none"),
    WithJsonSchema(_DURATION_SCHEMA),
    Shown("duration", "with its unit"),
]
"""A duration: written with its unit, held in milliseconds."""

PositiveDuration = Annotated[
    int,
    BeforeValidator(duration),
    AfterValidator(_above_zero),
    PlainSerializer(format_duration, return_type=str, when_used="json-unless-none"),
    WithJsonSchema(_POSITIVE_SCHEMA),
    Shown("duration above 0", "with its unit"),
]
"""A duration that is not zero."""

Size = Annotated[
    int,
    BeforeValidator(_size),
    PlainSerializer(format_size, return_type=str, when_used="json-unless-none"),
    WithJsonSchema(_SIZE_SCHEMA),
    Shown("size", "with its unit"),
]
"""A size in memory or on the wire: written with its unit, held in bytes."""

PropertyValue = Annotated[
    str | SecretStr,
    BeforeValidator(_property),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]

Properties = Annotated[dict[str, PropertyValue], AfterValidator(_hide), Shown("map of properties")]
"""Free properties of a client; the values of those that name a secret are hidden."""

Place = Annotated[str, PathMarker(), Shown("path or URI")]
"""A folder or file, or a URI of a shared file system."""
