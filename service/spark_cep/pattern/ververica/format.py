"""The shape of the JSON: keys, types and plain values, as pydantic models.

``schemas/rule.schema.json`` has them too. A graph and a node share a model, because a graph is the
node of the graph around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, create_model

from spark_cep.documents.model_errors import Explainer
from spark_cep.documents.places import Path
from spark_cep.documents.shapes import Form, Shape

FIELD: Final = "ververica"
"""The field of a rule that has the JSON."""

_UNITS = Literal["DAYS", "HOURS", "MINUTES", "SECONDS", "MILLISECONDS"]
_Text = Annotated[str, Field(min_length=1)]


class FormatShape(BaseModel):
    """Base of all shapes: unknown keys are refused, and nothing is converted silently."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class TimeShape(FormatShape):
    """A length of time."""

    unit: _UNITS = Field(
        description="`DAYS`, `HOURS`, `MINUTES`, `SECONDS` or `MILLISECONDS`",
    )
    size: int = Field(description="how many of the unit: a whole number from 1", ge=1)


class WindowShape(FormatShape):
    """The window of the whole pattern."""

    type: Literal["FIRST_AND_LAST", "PREVIOUS_AND_CURRENT"] = Field(
        description="what lies within the time: `FIRST_AND_LAST` or `PREVIOUS_AND_CURRENT`"
    )
    time: TimeShape = Field(description="`unit` and `size`")


_TIMES_FIELDS: Final[Any] = {
    "from": (int, Field(description="fewest repetitions: a number from 0", ge=0)),
    "to": (
        int | None,
        Field(default=None, description="most repetitions; not used with `LOOPING`", ge=1),
    ),
    "windowTime": (
        TimeShape | None,
        Field(default=None, description="longest time between two repetitions"),
    ),
}
# `from` is a keyword of Python.
TimesShape: Any = create_model(
    "TimesShape", __base__=FormatShape, __doc__="How often a node repeats.", **_TIMES_FIELDS
)


class ConditionShape(FormatShape):
    """The condition of a node on its events."""

    type: Literal["AVIATOR", "CLASS", "CUSTOM_ARGS", "GROOVY"] = Field(
        description="`AVIATOR`, `CLASS` or `CUSTOM_ARGS`"
    )
    expression: _Text | None = Field(default=None, description="the expression of `AVIATOR`")
    className: _Text | None = Field(default=None, description="the Java class of `CLASS`")
    args: (
        Annotated[
            Annotated[str, Tag("<one>")] | Annotated[list[str], Tag("<many>")],
            Discriminator(lambda value: "<many>" if isinstance(value, list) else "<one>"),
        ]
        | None
    ) = Field(default=None, description="arguments of the Java class: text, or a list of texts")
    nestedConditions: list[ConditionShape] | None = Field(
        default=None,
        description="the conditions that `RichAndCondition`, `RichOrCondition` or"
        " `RichNotCondition` is made of",
    )
    subClassName: _Text | None = Field(
        default=None, description="the Java class of the events that `SubtypeCondition` takes"
    )


class QuantifierShape(FormatShape):
    """The quantifier of a node."""

    consumingStrategy: Literal["STRICT", "SKIP_TILL_NEXT", "SKIP_TILL_ANY"] = Field(
        description="contiguity within the node: `STRICT`, `SKIP_TILL_NEXT` or `SKIP_TILL_ANY`"
    )
    properties: list[Literal["SINGLE", "LOOPING", "TIMES", "OPTIONAL", "GREEDY"]] = Field(
        description="any of `SINGLE`, `LOOPING`, `TIMES`, `OPTIONAL`, `GREEDY`"
    )
    times: TimesShape | None = Field(
        default=None, description="with `TIMES` and `LOOPING`: `from`, `to`, `windowTime`"
    )
    untilCondition: ConditionShape | None = Field(
        default=None, description="with `LOOPING`: the condition that ends the loop"
    )


class EdgeShape(FormatShape):
    """An edge: the contiguity between two nodes."""

    source: _Text = Field(description="the name of the node before")
    target: _Text = Field(description="the name of the node behind")
    type: Literal["STRICT", "SKIP_TILL_NEXT", "SKIP_TILL_ANY", "NOT_FOLLOW", "NOT_NEXT"] = Field(
        description="`STRICT`, `SKIP_TILL_NEXT`, `SKIP_TILL_ANY`, `NOT_FOLLOW` or `NOT_NEXT`"
    )


class AfterMatchShape(FormatShape):
    """The skip strategy after a match."""

    type: Literal[
        "NO_SKIP", "SKIP_TO_NEXT", "SKIP_PAST_LAST_EVENT", "SKIP_TO_FIRST", "SKIP_TO_LAST"
    ] = Field(
        description="`NO_SKIP`, `SKIP_TO_NEXT`, `SKIP_PAST_LAST_EVENT`, `SKIP_TO_FIRST` or"
        " `SKIP_TO_LAST`"
    )
    patternName: _Text | None = Field(
        default=None, description="the node of `SKIP_TO_FIRST` and `SKIP_TO_LAST`"
    )


class NodeShape(FormatShape):
    """A node: a step, or with `nodes` and `edges` a graph of them."""

    name: _Text = Field(description="the node's name")
    type: Literal["ATOMIC", "COMPOSITE"] = Field(
        description="`ATOMIC`; `COMPOSITE` for a node with `nodes` and `edges`"
    )
    quantifier: QuantifierShape = Field(description="how often the node takes events")
    condition: ConditionShape | None = Field(
        default=None, description="which events the node takes; `null`: every event"
    )
    version: Literal[1] | None = Field(default=None, description="the version of the format: `1`")
    nodes: Annotated[list[NodeShape], Field(min_length=1)] | None = Field(
        default=None, description="the nodes of a graph, in any order"
    )
    edges: list[EdgeShape] | None = Field(
        default=None, description="the edges of a graph, which say the order of its nodes"
    )
    window: WindowShape | None = Field(
        default=None, description="`type` and `time`, of the outermost graph alone"
    )
    afterMatchStrategy: AfterMatchShape | None = Field(
        default=None, description="`type` and `patternName`, of the outermost graph alone"
    )


def written(path: Path) -> str:
    """A path in the JSON as people write it: ``nodes[1].condition``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or FIELD


_ELSEWHERE: Final[Mapping[tuple[type[BaseModel], str], str]] = {
    (NodeShape, "afterMatchSkipStrategy"): "`afterMatchStrategy` on the outermost graph",
    (NodeShape, "graph"): "`nodes` and `edges` in the node itself",
    (NodeShape, "times"): "`times` in `quantifier`",
    (NodeShape, "untilCondition"): "`untilCondition` in `quantifier`",
    (QuantifierShape, "innerConsumingStrategy"): "`consumingStrategy`",
}
"""Keys of other dialects of the format, and what is used instead."""

EXPLAINER: Final = Explainer(
    Shape(Form.SECTION, NodeShape), lambda path: f"`{written(path)}`", elsewhere=_ELSEWHERE
)
"""Explains what pydantic finds wrong in the JSON."""
