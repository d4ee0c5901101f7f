"""The text of a key with several parts: a JSON array, escaped as Spark's ``to_json`` does it."""

from __future__ import annotations

import json
from collections.abc import Sequence

#: What must be escaped in a part, as a character class of regular expressions.
ESCAPED = r'[\x00-\x1f"\\]'

_ESCAPES = {code: f"\\u{code:04X}" for code in range(0x20)} | {
    ord(text): escape
    for text, escape in {
        "\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r", '"': r"\"", "\\": r"\\",
    }.items()
}  # fmt: skip


def escaped(part: str) -> str:
    """A part as it stands between its quotes."""
    return part.translate(_ESCAPES)


def key_text(parts: Sequence[str | None]) -> str:
    """The key as one text, from which the parts can be told. A part that is NULL is ``null``,
    which no text is: texts are in quotes."""
    return "[" + ",".join("null" if part is None else f'"{escaped(part)}"' for part in parts) + "]"


def has_null(text: str) -> bool:
    """Return whether a part of the key with this text is NULL."""
    return "null" in text and None in json.loads(text)
