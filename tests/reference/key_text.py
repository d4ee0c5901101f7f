"""The text of a key with several parts, one key at a time."""

from __future__ import annotations

from collections.abc import Sequence

from spark_cep.compiler.key_text import escaped


def key_text(parts: Sequence[str | None]) -> str:
    """The key as one text, from which the parts can be told."""
    return "[" + ",".join("null" if part is None else f'"{escaped(part)}"' for part in parts) + "]"
