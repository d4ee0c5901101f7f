"""The text of a key with several parts: a JSON array, escaped as Spark's ``to_json`` does it. A
part that is NULL is ``null``, which no text is: texts are in quotes."""

from __future__ import annotations

import json

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


def has_null(text: str) -> bool:
    """Return whether a part of the key with this text is NULL."""
    return "null" in text and None in json.loads(text)
