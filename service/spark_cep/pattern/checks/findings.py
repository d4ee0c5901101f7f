"""Findings of the checks of a rule's tree, and the names of the parts that they are about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from spark_cep.documents.places import Path, RelatedPart
from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.expressions.nodes import Node
from spark_cep.pattern.tree import Step


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found in a rule: a reason to refuse it, or a warning with its ``code``.

    ``path`` names the part, ``offsets`` characters of its expression; ``fix``: what is meant in
    their place without doubt; ``related``: other parts that it is about.
    """

    message: str
    path: Path
    allowed: str | None = None
    step: str | None = None
    code: Code | None = None
    at: Literal["key", "value"] = "value"
    offsets: tuple[int, int] | None = None
    fix: str | None = None
    related: tuple[RelatedPart, ...] = ()

    @property
    def warning(self) -> bool:
        """Return whether the rule may run all the same."""
        return self.code is not None


@dataclass(frozen=True, slots=True)
class Placed:
    """A step with its surroundings.

    ``previous`` is the step before it, ``parents`` are the groups around it (outermost first), and
    ``last`` says whether it is the last of its list, which is ``around``.
    """

    step: Step
    path: Path
    previous: Step | None
    last: bool
    parents: tuple[Placed, ...] = ()
    around: tuple[Step, ...] = ()

    def finding(
        self,
        message: str,
        field: str,
        allowed: str,
        code: Code | None = None,
        beside: Step | None = None,
    ) -> Finding:
        """A finding about one of the step's fields; with a ``code`` a warning. ``beside``: another
        step of the same list that it is about."""
        related = [] if beside is None else self._related(beside)
        path = (*self.path, field)
        return Finding(message, path, allowed, self.step.name, code, related=tuple(related))

    def _related(self, step: Step) -> Iterator[RelatedPart]:
        for number, other in enumerate(self.around):
            if other is step:
                yield f"the step `{step.name}`", (*self.path[:-1], number, "step"), None


def place_steps(
    steps: tuple[Step, ...], path: Path = ("pattern",), parents: tuple[Placed, ...] = ()
) -> Iterator[Placed]:
    """Every step and group with its surroundings, depth first, in the author's order."""
    for number, step in enumerate(steps):
        placed = Placed(
            step=step,
            path=(*path, number),
            previous=steps[number - 1] if number else None,
            last=number == len(steps) - 1,
            parents=parents,
            around=steps,
        )
        yield placed
        if step.group is not None:
            yield from place_steps(step.group, (*placed.path, "group"), (*parents, placed))


def repeats(step: Step) -> bool:
    """Return whether a step or group can be taken more than once."""
    return step.times is not None and step.times.maximum != 1


def is_last_event(placed: Placed) -> bool:
    """Return whether nothing of the pattern follows the step, not even a next round of a group."""
    return placed.last and all(
        parent.last and not repeats(parent.step) for parent in placed.parents
    )


def node_of(step: Step) -> Node | None:
    """The condition of a step; ``None`` where it takes any event of its type."""
    return None if step.where is None else step.where.node
