"""Problems of the shape of a rule document that underline the place."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from pydantic import BaseModel, ValidationError

from spark_cep.documents.model_errors import Explainer, ModelFault
from spark_cep.documents.places import Path, Places
from spark_cep.documents.shapes import Form, Shape
from spark_cep.errors import Problem
from spark_cep.pattern.document.shape import RuleFields, RuleShape, SqlRuleShape, StepShape

_ELSEWHERE: Final[Mapping[tuple[type[BaseModel], str], str]] = {
    (StepShape, "within"): "`within` on the rule, for the whole pattern; on a step that repeats,"
    " `gap` limits the time between two repetitions; since an earlier step, a condition does:"
    " `ts - a.ts < INTERVAL 5 MINUTES`",
    (StepShape, "distinct"): "a condition that compares with the events taken before:"
    " `COUNT(a.*) = 0 OR NOT ARRAY_CONTAINS(COLLECT(a.x), x)`",
    (StepShape, "after_match"): "`after_match` on the rule, for the whole pattern",
    (StepShape, "name"): "`step` for the step's name",
    (StepShape, "or"): "`where` with SQL's OR",
    (StepShape, "not"): "`after: not_next` or `after: not_followed_by`",
    (RuleShape, "name"): "`id` for the rule's name",
    (SqlRuleShape, "name"): "`id` for the rule's name",
    (RuleShape, "maxspan"): "`within` for the longest time from first to last event",
    (RuleShape, "until"): "`until` on the step that repeats: it ends that loop; for an event that"
    " must not come, a step with `after: not_followed_by`; for the time of the whole, `within`",
    (RuleShape, "where"): "`where` on each step of `pattern`",
    (RuleShape, "by"): "`key` for what events of one match have in common",
    (StepShape, "maxspan"): "`within` on the rule, for the whole pattern",
    (RuleShape, "steps"): "`pattern` for the list of steps",
    (RuleShape, "measures"): "`measures` inside `emit`",
}
"""Keys that people look for where they do not stand, and where to go instead."""


def shape_problems(
    error: ValidationError, kind: type[RuleFields], places: Places, known: Collection[Path]
) -> dict[Path, Problem]:
    """The problems of a rule's document of this ``kind``: see :func:`document_problems`."""
    return document_problems(error, _EXPLAINERS[kind], places, known)


def explainer(
    kind: type[BaseModel], elsewhere: Mapping[tuple[type[BaseModel], str], str]
) -> Explainer:
    """The explainer of documents of a ``kind``; ``elsewhere``: keys that people look for where they
    do not stand, and where to go instead."""
    return Explainer(Shape(Form.SECTION, kind), _name, elsewhere=elsewhere)


def document_problems(
    error: ValidationError, explained: Explainer, places: Places, known: Collection[Path]
) -> dict[Path, Problem]:
    """One problem for each part that pydantic found wrong in a document, in its order; ``known``
    parts, which are problems already, are left out."""
    return {
        fault.path: places.problem(
            fault.message,
            fault.path,
            allowed=_help(fault),
            at=fault.at,
        )
        for fault in explained.faults(error)
        if fault.path not in known
    }


def _help(fault: ModelFault) -> str | None:
    """The field's own sentence, unless more is known that it does not say."""
    if fault.allowed and fault.allowed not in (fault.description or ""):
        return fault.allowed
    return fault.description or fault.limit


def _name(path: Path) -> str:
    """A part's name: its key; the problem says in which step it is."""
    key = next((part for part in reversed(path) if isinstance(part, str)), None)
    if key is None:
        return "the document"
    return f"an item of `{key}`" if isinstance(path[-1], int) else f"`{key}`"


_EXPLAINERS: Final[Mapping[type[RuleFields], Explainer]] = {
    kind: explainer(kind, _ELSEWHERE) for kind in (RuleShape, SqlRuleShape)
}
