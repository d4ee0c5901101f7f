"""Explanations of columns, functions and steps, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from spark_cep.language.documents import OpenDocument
from spark_cep.language.known.pages import ROW_FUNCTIONS, function_texts
from spark_cep.language.known.signatures import signature
from spark_cep.language.places.names import NamesInScope
from spark_cep.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    ArrayType,
    DecimalType,
    MapType,
    SqlType,
)

_EXAMPLES: Final[Mapping[SqlType, str]] = {
    STRING: "{} = 'text'",
    INT: "{} > 10",
    BIGINT: "{} > 10",
    FLOAT: "{} > 1.5",
    DOUBLE: "{} > 1.5",
    BOOLEAN: "{} IS TRUE",
    TIMESTAMP: "{} >= TIMESTAMP '2026-01-31 12:00:00'",
    DATE: "{} >= DATE '2026-01-31'",
}


def column_text(document: OpenDocument, names: NamesInScope, path: tuple[str, ...]) -> str:
    """The meaning of a column: what its schema says, its symbols, an example."""
    column = names.column(path)
    kind = names.type_of(path)
    if not column or kind is None:
        return ""
    parts = [*dict.fromkeys(_documented(document, names, path))]
    symbols = names.symbols_of(path)
    if symbols:
        parts.append("Symbols: " + ", ".join(f"`{symbol}`" for symbol in symbols))
    example = _example(".".join(path), kind, symbols)
    if example:
        parts.append(f"Example: `{example}`")
    sources = dict.fromkeys(f"`{name}`" for _, name, _ in names.records_of(path) if name)
    if sources:
        parts.append("Record type: " + ", ".join(sources))
    return "\n\n".join(parts)


def function_text(name: str) -> str:
    """The meaning of a function, with an example; empty where there is none of that name."""
    upper = name.upper()
    text = ROW_FUNCTIONS.get(upper) or function_texts().get(upper)
    if text is None:
        return ""
    also = "" if text.name in (upper, signature(upper)) else f"The same as `{text.name}`. "
    return f"{also}{text.meaning}\n\nExample: {text.example}"


def _documented(
    document: OpenDocument, names: NamesInScope, path: tuple[str, ...]
) -> Iterator[str]:
    around = names.record_of(path[:-1]) if len(path) > 1 else None
    column = names.column(path)
    owners = [name for _, name, _ in names.records_of(path)] if len(column) == 1 else []
    if around is not None and around.name:
        owners.append(around.name)
    for owner in owners:
        text = document.docs.get(f"{owner}.{column[-1]}")
        if text:
            yield text


def _example(written: str, kind: SqlType, symbols: tuple[str, ...]) -> str:
    if symbols:
        return f"{written} = '{symbols[0]}'"
    if isinstance(kind, DecimalType):
        return f"{written} > 1.5"
    if isinstance(kind, ArrayType):
        return f"SIZE({written}) > 1"
    if isinstance(kind, MapType):
        return f"{written}['key'] IS NOT NULL"
    return _EXAMPLES[kind].format(written) if kind in _EXAMPLES else ""
