"""The named parts of a text."""

from __future__ import annotations

from spark_cep.language.answers import Symbol
from spark_cep.language.documents import OpenDocument


def symbols(document: OpenDocument) -> list[Symbol]:
    """The rules of a text with their steps and measures, the cases, or the sections of the
    configuration, in the order of the text."""
    return []
