"""The names of a case's events, and what expectations call them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_cep.cases.document.shape import CaseShape, CaseStepShape, ExpectShape, written
from spark_cep.documents.nearest import instead

#: Message, place below the case, and help.
Wrong = tuple[str, tuple[str | int, ...], str]


@dataclass(frozen=True)
class EventNames:
    """The names of the events that a case sends, in their order; ``None`` for those that have none.
    ``twice``: steps whose name another has before them."""

    names: tuple[str | None, ...]
    twice: tuple[tuple[int, str], ...] = ()

    @classmethod
    def of(cls, case: CaseShape) -> EventNames:
        """The names of the events of ``case``."""
        names: list[str | None] = []
        twice = []
        for number, step in enumerate(case.events):
            if isinstance(step, CaseStepShape) and step.send is not None:
                mine = names_of(step)
                twice += [(number, name) for name in mine if name is not None and name in names]
                names += mine
        return cls(tuple(names), tuple(twice))

    def written(self, number: int) -> str | int:
        """Return the event's name, or its number from 1."""
        return self.names[number] or number + 1

    def number(self, reference: str | int) -> int | None:
        """The place of an event, from 0; ``None`` where there is no such event."""
        if isinstance(reference, int):
            return reference - 1 if reference <= len(self.names) else None
        return self.names.index(reference) if reference in self.names else None


def names_of(step: CaseStepShape) -> list[str | None]:
    """The names of the events of one step."""
    times = step.times or 1
    if step.name is None or times == 1:
        return [step.name] * times
    return [f"{step.name}-{number}" for number in range(1, times + 1)]


def references_of(value: Any) -> list[str | int]:
    """The references of an expectation: one, or a list."""
    return list(value) if isinstance(value, list) else [value]


def check_steps(case: CaseShape, steps: Mapping[str, Sequence[str]]) -> Iterator[Wrong]:
    """Yield each wrong name of a step in expectations; ``steps``: those of each rule."""
    if not isinstance(case.expect, ExpectShape):
        return
    for kind, results in written(case.expect).items():
        for number, result in enumerate(results if isinstance(results, list) else ()):
            rule = getattr(result, "rule", None)
            if rule is not None and rule not in steps:
                place = ("expect", kind, number, "rule")
                yield f"there is no rule `{rule}`", place, instead(rule, steps, "rules")
                continue
            known = [name for each in steps if rule in (None, each) for name in steps[each]]
            for name in getattr(result, "steps", None) or {}:
                if name.casefold() not in [each.casefold() for each in known]:
                    at = ("expect", kind, number, "steps", name)
                    yield f"there is no step `{name}`", at, instead(name, known, "steps")


def check_references(case: CaseShape, names: EventNames) -> Iterator[Wrong]:
    """Yield each wrong reference of a case to its events."""
    if not isinstance(case.expect, ExpectShape):
        return
    for kind, results in written(case.expect).items():
        for number, result in enumerate(results if isinstance(results, list) else ()):
            here = ("expect", kind, number)
            if kind == "late":
                yield from _wrong([result], here, names)
                continue
            event = getattr(result, "event", None)
            if event is not None:
                yield from _wrong([event], (*here, "event"), names)
            for step, taken in (getattr(result, "steps", None) or {}).items():
                yield from _wrong(references_of(taken), (*here, "steps", step), names)


def _wrong(
    references: Sequence[str | int], here: tuple[str | int, ...], names: EventNames
) -> Iterator[Wrong]:
    for reference in references:
        if names.number(reference) is not None:
            continue
        if isinstance(reference, int):
            count = len(names.names)
            yield (
                f"there is no event {reference}",
                here,
                f"events by name, or by number 1 to {count}",
            )
        else:
            known = [name for name in names.names if name is not None]
            yield f"there is no event `{reference}`", here, instead(reference, known, "events")
