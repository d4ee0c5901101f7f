"""Conditions, formulas, states and repetitions in words, as explanations and drawings show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from spark_cep.compiler.formula import All, AnyOf, Atom, Constant, Formula, Not
from spark_cep.compiler.plan import AnyAtom, GapAtom, Plan, State, StateKind
from spark_cep.durations import format_duration
from spark_cep.errors import printable
from spark_cep.pattern.checks.findings import repeats
from spark_cep.pattern.tree import AfterMatch, Loop, Step, Within

LONGEST_IN_FULL: Final = 40
"""Most characters of an edge's condition when conditions are written in full."""


class ConditionNames:
    """The texts of the conditions on a plan's edges: in full where that is short on every edge,
    else by number, as ``c0``, with a legend."""

    def __init__(self, plan: Plan) -> None:
        self._texts = tuple(condition_text(atom) for atom in plan.atoms)
        self.in_full = all(
            len(in_words(edge.condition, self._texts.__getitem__)) <= LONGEST_IN_FULL
            for state in plan.states
            for edge in state.edges
        )

    def written(self, formula: Formula) -> str:
        """The formula as it stands on an edge."""
        return in_words(formula, self._texts.__getitem__ if self.in_full else condition_name)

    @property
    def legend(self) -> tuple[str, ...]:
        """Lines that explain each number; empty when conditions are written in full."""
        if self.in_full:
            return ()
        return tuple(f"{condition_name(n)}: {text}" for n, text in enumerate(self._texts))


def condition_name(number: int) -> str:
    """The short name of atom ``number``."""
    return f"c{number}"


def condition_text(atom: AnyAtom) -> str:
    """An atom in full."""
    if isinstance(atom, GapAtom):
        return f"less than {format_duration(atom.gap_ms)} since the last event taken"
    return printable(str(atom))


def in_words(formula: Formula, atom: Callable[[int], str]) -> str:
    """The formula with its atoms as ``atom`` writes them, without parentheses around it."""
    match formula:
        case Constant(value):
            return "always" if value else "never"
        case Atom(index):
            return atom(index)
        case Not(operand):
            return f"not {_operand(operand, atom)}"
        case All(operands):
            return " and ".join(_operand(each, atom) for each in operands)
        case AnyOf(operands):
            return " or ".join(_operand(each, atom) for each in operands)
    raise TypeError(f"no words for {formula!r}")


def _operand(formula: Formula, atom: Callable[[int], str]) -> str:
    text = in_words(formula, atom)
    is_one_word = isinstance(formula, Not | Constant) or " " not in text
    return text if is_one_word else f"({text})"


def window_in_words(within: Within) -> str:
    """The window's bounds; empty when there is none."""
    bounds = []
    if within.max_ms is not None:
        bounds.append(
            f"less than {format_duration(within.max_ms)} from the first event to the last"
        )
    if within.gap_ms is not None:
        bounds.append(f"less than {format_duration(within.gap_ms)} from one event to the next")
    return ", ".join(bounds)


def skip_in_words(skip: AfterMatch) -> str:
    """The skip strategy with its step."""
    return skip.strategy.value if skip.step is None else f"{skip.strategy.value} {skip.step}"


def state_in_words(state: State) -> Iterator[str]:
    """Describe the state, as far as its edges do not say it."""
    if state.kind is StateKind.START:
        yield "start"
    if state.kind is StateKind.STOP:
        yield "the partial match ends"
    if state.absence:
        yield "a match at the deadline"
    if state.gap_ms is not None:
        yield f"out of time {format_duration(state.gap_ms)} after the last event"
    taking = state.taking_gap_ms
    if taking is not None and taking != state.gap_ms:
        yield f"takes nothing from {format_duration(taking)} after the last event on"


def repetition(step: Step) -> str:
    """Describe the repetitions of a step or group, and their contiguity."""
    return ", ".join(_repetition(step))


def _repetition(step: Step) -> Iterator[str]:
    yield _how_often(step)
    if repeats(step):
        yield "any combination" if step.loop is Loop.COMBINATIONS else step.loop.value
    if step.greedy:
        yield "greedy"
    if step.gap_ms is not None:
        yield f"less than {format_duration(step.gap_ms)} apart"


def _how_often(step: Step) -> str:
    times = step.times
    if times is None:
        return "once or not at all" if step.optional else "once"
    if step.optional and times.minimum == 1:
        if times.maximum is None:
            return "any number of times"
        return f"up to {_times(times.maximum)}, or not at all"
    if times.maximum is None:
        often = f"{_times(times.minimum)} or more"
    elif times.minimum == times.maximum:
        often = _times(times.minimum)
    else:
        often = f"{times.minimum} to {_times(times.maximum)}"
    return f"{often}, or not at all" if step.optional else often


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
