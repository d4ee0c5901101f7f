"""The keys and values that a document may have, by its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from spark_cep.documents.places import Path
from spark_cep.language.documents import Language
from spark_cep.pattern.checks.sql_rule import FIELD, IN_STATEMENT
from spark_cep.pattern.document.loading import CASES

_SCHEMAS: Final = {
    Language.RULES: "rule.schema.json",
    Language.SQL: "rule.schema.json",
    Language.CASES: "cases.schema.json",
    Language.SETTINGS: "config.schema.json",
}
_OTHER_PATTERNS: Final = (FIELD, "ververica", "java_classes")


@dataclass(frozen=True, slots=True)
class Key:
    """A key that may stand in a mapping, and its meaning. ``is_block``: its value is a mapping or
    list, and nothing else."""

    name: str
    description: str
    values: tuple[str, ...]
    default: str | None
    is_block: bool
    is_required: bool


def keys_at(language: Language, path: Path) -> list[Key]:
    """The keys of the mapping at a path; none where any name may stand, or no mapping."""
    found: dict[str, Key] = {}
    for part in _below(language, path):
        required = part.get("required", ())
        for name, value in part.get("properties", {}).items():
            if value is not False:
                found.setdefault(name, _key(language, path, name, name in required))
    return list(found.values())


def key_at(language: Language, path: Path) -> Key | None:
    """The key that a path ends with; ``None`` where there is none of that name."""
    if not path or not isinstance(path[-1], str):
        return None
    known = (key for key in keys_at(language, path[:-1]) if key.name == path[-1])
    return next(known, None)


def fitting(keys: Iterable[Key], language: Language, path: Path, given: set[str]) -> list[Key]:
    """The keys that may stand beside those that are ``given`` already."""
    taken = set(given)
    if language is not Language.CASES and not path:
        if FIELD in given or language is Language.SQL:
            taken |= {FIELD, *IN_STATEMENT}
        elif "ververica" in given:
            taken |= {FIELD, "pattern", "within", "after_match"}
        elif "pattern" in given:
            taken |= set(_OTHER_PATTERNS)
    elif path[-2:-1] == ("pattern",) and "group" in given:
        taken |= {"where", "of_type", "gap", "greedy"}
    return [key for key in keys if key.name not in taken]


def values_at(language: Language, path: Path) -> list[str]:
    """The words that may stand at a path, where these are known."""
    found: dict[str, None] = {}
    for part in _below(language, path):
        found |= dict.fromkeys(_values(part))
    return list(found)


def description_at(language: Language, path: Path) -> str:
    """The meaning of the value at a path."""
    described = (part.get("description") for part in _below(language, path))
    return next((text for text in described if text), "")


def _key(language: Language, path: Path, name: str, required: bool) -> Key:
    parts = _below(language, (*path, name))
    default = next((part["default"] for part in parts if "default" in part), None)
    values = dict.fromkeys(value for part in parts for value in _values(part))
    blocks = [part.get("type") in ("object", "array") for part in parts if _says_type(part)]
    return Key(
        name,
        description_at(language, (*path, name)),
        tuple(values),
        None if default in (None, "", [], {}) else json.dumps(default).strip('"'),
        bool(blocks) and all(blocks),
        required,
    )


def _says_type(part: Mapping[str, Any]) -> bool:
    return part.get("type") not in (None, "null")


def _values(part: Mapping[str, Any]) -> Iterator[str]:
    if part.get("type") == "boolean":
        yield from ("true", "false")
    for value in (*part.get("enum", ()), *([part["const"]] if "const" in part else ())):
        yield value if isinstance(value, str) else json.dumps(value)


@cache
def _below(language: Language, path: Path) -> tuple[Mapping[str, Any], ...]:
    """The schemas of the part at a path: one, or several alternatives."""
    if language in (Language.RULES, Language.SQL) and path[:1] == (CASES,):
        language = Language.CASES
    root = _schema(language)
    found = list(_alternatives(root, root))
    for step in path:
        inner: list[Mapping[str, Any]] = []
        for part in found:
            below = _child(part, step)
            if isinstance(below, dict):
                inner += _alternatives(root, below)
        found = inner
    return tuple(found)


def _child(part: Mapping[str, Any], step: str | int) -> Any:
    if isinstance(step, int):
        return part.get("items")
    return part.get("properties", {}).get(step, part.get("additionalProperties"))


def _alternatives(root: Mapping[str, Any], part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The part with what it refers to; each of several forms that it may have."""
    while "$ref" in part:
        name = str(part["$ref"]).rpartition("/")[2]
        part = {**root["$defs"][name], **{k: v for k, v in part.items() if k != "$ref"}}
    forms = [each for name in ("anyOf", "oneOf") for each in part.get(name, ())]
    forms = [each for each in forms if each.keys() - {"required"}]
    if not forms:
        yield part
        return
    around = {k: v for k, v in part.items() if k not in ("anyOf", "oneOf")}
    for form in forms:
        yield from _alternatives(root, {**form, **around})


@cache
def _schema(language: Language) -> Mapping[str, Any]:
    text = (files("spark_cep.schemas") / _SCHEMAS[language]).read_text("utf-8")
    schema: Mapping[str, Any] = json.loads(text)
    return schema
