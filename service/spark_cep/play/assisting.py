"""Answers for the editor while a rule is written: see :mod:`spark_cep.language`."""

from __future__ import annotations

from spark_cep.language.answers import Completion, Diagnostic, Hover, TextPosition
from spark_cep.language.completions import completions
from spark_cep.language.diagnostics import diagnostics
from spark_cep.language.documents import OpenDocument, language_of
from spark_cep.language.hover import hover
from spark_cep.play.reading import Schemas
from spark_cep.play.trial import Trial


def problems_in(trial: Trial) -> list[Diagnostic]:
    """Everything that is wrong with the rule's text."""
    return diagnostics(_document(trial))


def completions_at(trial: Trial, position: TextPosition) -> list[Completion]:
    """Completions at a position of the rule's text."""
    return completions(_document(trial), position)


def hover_at(trial: Trial, position: TextPosition) -> Hover | None:
    """The meaning of what stands at a position of the rule's text."""
    return hover(_document(trial), position)


def _document(trial: Trial) -> OpenDocument:
    types = Schemas.of(trial.schemas).types
    return OpenDocument(trial.file, trial.text, language_of(trial.file, trial.text), types)
