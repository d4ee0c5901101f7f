"""What may stand at the cursor: keys, values, columns, steps, functions, units."""

from __future__ import annotations

from spark_cep.language.answers import Completion, Position
from spark_cep.language.documents import OpenDocument


def completions(document: OpenDocument, position: Position) -> list[Completion]:
    """What may stand at a position, the likeliest first; each replaces the word that stands there.
    Editors leave out what does not fit the word."""
    return []
