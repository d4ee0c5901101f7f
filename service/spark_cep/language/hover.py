"""What the word at a position means."""

from __future__ import annotations

from spark_cep.language.answers import Hover, Position
from spark_cep.language.documents import OpenDocument


def hover(document: OpenDocument, position: Position) -> Hover | None:
    """The type, meaning and example of what stands at a position: a column, a function, a step, a
    key, the code of a check. ``None`` where there is nothing to say."""
    return None
