"""The plan of one rule: its states, edges and numbered conditions. Immutable.

The shape is that of Flink's NFA (``org.apache.flink.cep.nfa.State`` and ``StateTransition``), so
that the answers are Flink's:

* TAKE: the event joins the partial match, which moves on;
* IGNORE: the event passes, the partial match moves on (mostly to where it stands);
* PROCEED: moves on without using the event up.

Conditions are numbered once per rule (*atoms*). An atom reads the event alone, looks back at what
the partial match has taken, or asks for the time since the last event taken.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from spark_cep.compiler.formula import Formula
from spark_cep.pattern.expressions import Expression
from spark_cep.pattern.tree import AfterMatch, Rule


class Action(Enum):
    """The effect of an edge on the event."""

    TAKE = "take"
    IGNORE = "ignore"
    PROCEED = "proceed"


class StateKind(Enum):
    """The kind of a state."""

    START = "start"
    NORMAL = "normal"
    PENDING = "pending"  # a NOT at the end: a match when the deadline passes
    STOP = "stop"  # a NOT was violated: the partial match ends silently
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class Edge:
    """One transition; ``target`` is a state's number."""

    action: Action
    target: int
    condition: Formula


@dataclass(frozen=True, slots=True)
class State:
    """One state. ``step`` is the author's step whose event a TAKE from here is listed under.
    ``gap_ms``: with no event taken for so long, a partial match here is out of time.
    ``taking_gap_ms``: with none for so long, none can be taken from here any more, though absence
    may still be awaited. ``absence``: when it is out of time, that is a match."""

    number: int
    label: str
    kind: StateKind
    step: str
    edges: tuple[Edge, ...]
    gap_ms: int | None = None
    taking_gap_ms: int | None = None
    absence: bool = False


@dataclass(frozen=True, slots=True)
class EventAtom:
    """A condition on the event alone: of record type ``of_type`` (if given) and ``expression``
    (if given). Evaluated once per event, before the matcher."""

    expression: Expression | None
    of_type: str | None
    step: str

    def __str__(self) -> str:
        parts = [f"type is {self.of_type}"] if self.of_type else []
        parts += [self.expression.canonical] if self.expression else []
        return " and ".join(parts)


@dataclass(frozen=True, slots=True)
class LookBackAtom:
    """A condition that also reads the events taken so far. Evaluated per partial match."""

    expression: Expression
    of_type: str | None
    step: str

    def __str__(self) -> str:
        of_type = f"type is {self.of_type} and " if self.of_type else ""
        return of_type + self.expression.canonical


@dataclass(frozen=True, slots=True)
class GapAtom:
    """Less than ``gap_ms`` since the last event taken. Evaluated per partial match."""

    gap_ms: int
    step: str

    def __str__(self) -> str:
        return f"less than {self.gap_ms} ms since the last event taken"


AnyAtom = EventAtom | LookBackAtom | GapAtom


@dataclass(frozen=True)
class Plan:
    """One rule, compiled.

    ``event_atoms`` come first in ``atoms``, so an event's own bits are its low bits. ``relevant``
    is a formula over the event atoms: where it is false and the plan is not ``strict``, the event
    cannot change anything. ``strict`` plans must also learn that *some* event came between.
    """

    rule: Rule
    states: tuple[State, ...]
    start: int
    atoms: tuple[AnyAtom, ...]
    relevant: Formula
    strict: bool
    steps: tuple[str, ...]
    step_types: tuple[tuple[str, str | None], ...]

    @property
    def after_match(self) -> AfterMatch:
        """The rule's skip strategy."""
        return self.rule.after_match

    @property
    def window_ms(self) -> int | None:
        """First-to-last window in milliseconds, end exclusive."""
        return self.rule.within.max_ms

    @cached_property
    def event_atoms(self) -> tuple[EventAtom, ...]:
        """The atoms that read the event alone, numbered from 0."""
        return tuple(atom for atom in self.atoms if isinstance(atom, EventAtom))

    @cached_property
    def event_mask(self) -> int:
        """Mask of the event atoms."""
        return (1 << len(self.event_atoms)) - 1

    @property
    def closed(self) -> int:
        """A bit beside those of the atoms: no partial match may start at the event."""
        return 1 << len(self.atoms)

    @cached_property
    def fingerprint(self) -> str:
        """Identity of everything that gives meaning to stored partial matches."""
        rule = self.rule
        key = ", ".join(expression.canonical for expression in rule.key)
        text = f"{rule.id}\n{rule.version}\n{key}\n{', '.join(rule.events)}\n{self}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def type_of(self, step: str) -> str | None:
        """The record type that ``step`` asks for, if any."""
        return dict(self.step_types).get(step)

    def __str__(self) -> str:
        within = self.rule.within
        head = [f"plan {self.rule.id}"]
        head += [f"within {within.max_ms} ms"] if within.max_ms is not None else []
        head += [f"gap {within.gap_ms} ms"] if within.gap_ms is not None else []
        skip = self.after_match
        head += [skip.strategy.value + (f" {skip.step}" if skip.step else "")]
        head += ["strict"] if self.strict else []
        lines = [", ".join(head)]
        for number, atom in enumerate(self.atoms):
            kind = {EventAtom: "event", LookBackAtom: "look back", GapAtom: "gap"}[type(atom)]
            lines.append(f"  c{number} {kind}: {atom}")
        lines.append(f"  relevant: {self.relevant}")
        for state in self.states:
            gap = f" gap {state.gap_ms} ms" if state.gap_ms is not None else ""
            absence = " absence" if state.absence else ""
            lines.append(f"  {state.number} {state.label} [{state.kind.value}]{gap}{absence}")
            lines += [
                f"    {edge.action.value} -> {edge.target} if {edge.condition}"
                for edge in state.edges
            ]
        return "\n".join(lines)
