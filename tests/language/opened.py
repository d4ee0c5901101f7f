"""Texts of tests: `¦` is the cursor."""

from __future__ import annotations

import json
from typing import Any, Final

from spark_cep.language.answers import TextPosition
from spark_cep.language.documents import OpenDocument, language_of
from spark_cep.language.known.event_types import types_of_text
from spark_cep.pattern.document.loading import LoadedRule

SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Payment",
    "namespace": "shop",
    "fields": [
        {"name": "user_id", "type": "string", "doc": "The account that pays."},
        {"name": "amount", "type": "double"},
        {
            "name": "kind",
            "type": ["null", {"type": "enum", "name": "Kind", "symbols": ["CARD", "CASH"]}],
        },
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "place",
            "type": {
                "type": "record",
                "name": "Place",
                "fields": [{"name": "city", "type": "string", "doc": "The town."}],
            },
        },
    ],
}
KNOWN: Final = types_of_text(json.dumps(SCHEMA), "payment.avsc")


def opened(
    text: str, name: str = "r.yaml", rules: tuple[LoadedRule, ...] = (), *, typed: bool = True
) -> tuple[OpenDocument, TextPosition]:
    """The text without its cursor, and the position of that; its end without one."""
    before, _, behind = text.partition("¦")
    whole = before + behind
    types, docs = (KNOWN.types, KNOWN.docs) if typed else ({}, {})
    document = OpenDocument(name, whole, language_of(name, whole), types, docs, rules)
    return document, document.position(len(before))
