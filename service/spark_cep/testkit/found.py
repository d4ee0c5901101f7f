"""The results of the runner as those of a test, with the events that it sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from spark_cep.compiler.rule_set import AnyPlan
from spark_cep.errors import Problem
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.model import Coordinates, DeadLetter, LateEvent, TakenEvent
from spark_cep.rules.rule_set import Version
from spark_cep.testkit.results import (
    FailedEvent,
    FoundMatch,
    FoundRow,
    FoundTimeout,
    LateArrival,
    OpenMatch,
    SentEvent,
)
from spark_cep.testkit.times import moment


class FoundResults:
    """Results with the events of a test in them.

    Args:
        plans: The plans of the rules.
    """

    def __init__(self, plans: Iterable[AnyPlan]) -> None:
        self._step_names: dict[Version, tuple[str, ...]] = {}
        self.know(plans)
        self._event_at: dict[Coordinates, SentEvent] = {}
        self._misfits: dict[Coordinates, Mapping[tuple[str, str], Problem]] = {}

    def know(self, plans: Iterable[AnyPlan]) -> None:
        """Note the steps of versions of rules."""
        self._step_names |= {(each.rule.id, each.rule.version): each.steps for each in plans}

    def sent(self, event: SentEvent, misfits: Mapping[tuple[str, str], Problem]) -> None:
        """Note an event, and the values of it with which rules, by id and step, cannot compute."""
        self._event_at[event.at] = event
        self._misfits[event.at] = misfits

    def number(self, at: Coordinates) -> int:
        """The number of the event with these coordinates."""
        return self._event_at[at].number

    def matches(self, outputs: Outputs) -> list[FoundMatch]:
        """The matches."""
        return [
            FoundMatch(
                match.rule_id,
                match.rule_version,
                match.key,
                self._steps(match.steps),
                self._step_names[match.rule_id, match.rule_version],
                match.match_id,
                moment(match.time),
                match.measures,
            )
            for match in outputs.matches
        ]

    def rows(self, outputs: Outputs) -> list[FoundRow]:
        """The rows of matches."""
        return [
            FoundRow(
                row.rule_id,
                row.rule_version,
                row.key,
                row.match_id,
                row.row,
                row.variable,
                self._event_at[row.event.at],
                row.columns,
            )
            for row in outputs.rows
        ]

    def timeouts(self, outputs: Outputs) -> list[FoundTimeout]:
        """The timeouts."""
        return [
            FoundTimeout(
                timeout.rule_id,
                timeout.rule_version,
                timeout.key,
                self._steps(timeout.steps),
                self._step_names[timeout.rule_id, timeout.rule_version],
                timeout.match_id,
                moment(timeout.deadline),
                timeout.already_matched,
                timeout.measures,
                timeout.events_omitted,
            )
            for timeout in outputs.timeouts
        ]

    def late(self, events: Iterable[LateEvent]) -> list[LateArrival]:
        """The late events."""
        return [LateArrival(self._event_at[late.at], moment(late.watermark)) for late in events]

    def dead_letters(self, outputs: Outputs) -> list[FailedEvent]:
        """The dead letters."""
        # An event is one dead letter, however many rules miss their key in it.
        letters = {
            letter.at if letter.reason == "missing_key" else number: letter
            for number, letter in enumerate(outputs.dead_letters)
        }
        return [
            FailedEvent(
                self._event_at[letter.at],
                letter.reason,
                self._detail(letter),
                letter.rule_id,
                letter.step,
            )
            for letter in letters.values()
        ]

    def open_match(self, partial: PartialMatch) -> OpenMatch:
        """A live partial match."""
        return OpenMatch(
            partial.rule_id,
            partial.rule_version,
            partial.key,
            self._steps(partial.steps),
            self._step_names[partial.rule_id, partial.rule_version],
            None if partial.deadline is None else moment(partial.deadline),
            partial.waits_for,
            partial.forbids,
            partial.absence,
            partial.already_matched,
            partial.held_back,
        )

    def _steps(self, steps: Mapping[str, Sequence[TakenEvent]]) -> dict[str, tuple[SentEvent, ...]]:
        return {
            name: tuple(self._event_at[event.at] for event in taken)
            for name, taken in steps.items()
        }

    def _detail(self, letter: DeadLetter) -> str:
        """The reason in words: where a value had the wrong type, that."""
        place = (letter.rule_id or "", letter.step or "")
        misfit = self._misfits.get(letter.at, {}).get(place)
        return letter.detail if misfit is None else f"{misfit.message}: {misfit.allowed}"
