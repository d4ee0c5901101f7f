"""Changes that settle a problem."""

from __future__ import annotations

from collections.abc import Sequence

from spark_cep.language.answers import Action, Diagnostic, Range
from spark_cep.language.documents import OpenDocument


def actions(document: OpenDocument, range_: Range, found: Sequence[Diagnostic]) -> list[Action]:
    """The changes that settle those of ``found`` (of :func:`diagnostics`) that touch a range."""
    return []
