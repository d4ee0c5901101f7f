"""Runs a case: its events and clock through the test kit, that is production's decoder, key groups
and matcher in one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from spark_cep.cases.document.files import Suite
from spark_cep.cases.document.loading import Case
from spark_cep.cases.document.shape import CaseStepShape, When
from spark_cep.cases.document.values import column_value, time_value
from spark_cep.errors import Problem
from spark_cep.matcher.keys import KeysMatcher
from spark_cep.pattern.types import RecordType
from spark_cep.pipeline.match.group_matcher import MakeMatcher
from spark_cep.testkit.results import SentEvent
from spark_cep.testkit.rule_test import RuleTest


@dataclass
class CaseRun:
    """A case that was run: its kit, and the events that it sent. ``problem``: why it could not be
    run to its end."""

    case: Case
    kit: RuleTest
    events: list[SentEvent] = field(default_factory=list)
    problem: Problem | None = None

    @property
    def start(self) -> int:
        """The beginning in microseconds since 1970."""
        return self.case.shape.start * 1_000

    def written(self, event: SentEvent) -> str | int:
        """The name of an event, or its number from 1."""
        return self.case.names.written(event.number)


def run_case(suite: Suite, case: Case, matcher: MakeMatcher = KeysMatcher) -> CaseRun:
    """Run one case. ``matcher``: what makes the matchers of keys, in place of the usual ones.

    Raises RuleSetError where a rule does not fit the schemas, SchemaError where a schema is none.
    """
    schemas, shape = suite.schemas, case.shape
    kit = RuleTest(
        suite.rules_of(case),
        start=shape.start,
        allowed_disorder=timedelta(milliseconds=shape.allowed_disorder),
        schema=schemas.get(None),
        schemas=None
        if None in schemas or not schemas
        else {name: each for name, each in schemas.items() if name is not None},
        matcher=matcher,
    )
    run = _Run(case, kit)
    for number, step in enumerate(shape.events):
        try:
            run.take(step)
        except (ValueError, OverflowError) as error:
            problem = case.problem(str(error), "events", number, *run.part)
            return CaseRun(case, kit, run.events, problem)
    run.end()
    return CaseRun(case, kit, run.events)


class _Run:
    """A case under way. ``part``: the key that is at work."""

    def __init__(self, case: Case, kit: RuleTest) -> None:
        self._case, self._kit = case, kit
        self.events: list[SentEvent] = []
        self.part: tuple[str, ...] = ()
        self._start = case.shape.start
        #: The clock in milliseconds, and the time of the last step in microseconds.
        self._now = self._start
        self._before = self._start * 1_000
        self._finished = False

    def take(self, step: str | CaseStepShape) -> None:
        """Take one step; ValueError says what is wrong with it."""
        self.part = ()
        if step == "restart":
            self._kit.restart()
        elif step == "finish":
            self._kit.finish()
            self._finished = True
        elif isinstance(step, CaseStepShape):
            self._take(step)

    def _take(self, step: CaseStepShape) -> None:
        if step.send is not None:
            self._send(step, step.send)
        elif step.clock is not None:
            self.part = ("clock",)
            self._move(self._time(step.clock))
        elif step.watermark is not None:
            self.part = ("watermark",)
            to = self._time(step.watermark)
            self._kit.watermark(to // 1_000)
            self._before = to

    def _send(self, step: CaseStepShape, values: Mapping[str, object]) -> None:
        self.part = ("at",)
        time = self._now * 1_000 if step.at is None else self._time(step.at)
        self.part = ("send",)
        columns = self._kit.columns(step.input, step.of_type)
        sent = self._columns(values, columns)
        event_time = self._case.shape.event_time
        for number in range(step.times or 1):
            at = time + number * (step.every or 0) * 1_000
            # The clock follows the newest event, as the watermark does in the job.
            if at // 1_000 > self._now:
                self._move(at)
            self._before = at
            more = {} if event_time is None else self._event_time(event_time, at, columns)
            self.events.append(
                self._kit.send(
                    {**more, **sent},
                    at=timedelta(microseconds=at - self._now * 1_000),
                    input=step.input,
                    of_type=step.of_type,
                )
            )

    @staticmethod
    def _columns(values: Mapping[str, object], columns: RecordType | None) -> dict[str, object]:
        kinds = {} if columns is None else columns.fields
        return {name: column_value(value, kinds.get(name)) for name, value in values.items()}

    @staticmethod
    def _event_time(name: str, at: int, columns: RecordType | None) -> dict[str, object]:
        if columns is not None and name not in columns.fields:
            return {}
        return {name: time_value(at, None if columns is None else columns.fields[name])}

    def _time(self, when: When) -> int:
        return when.micros_since_1970(self._start * 1_000, self._before)

    def _move(self, micros: int) -> None:
        self._kit.advance_to(micros // 1_000)
        self._now, self._before = micros // 1_000, micros

    def end(self) -> None:
        """Let everything that was sent be applied; deadlines behind the clock stay open."""
        if not self._finished and (self._kit.watermark_time < self._kit.now):
            self._kit.watermark(self._now)


def selected(suite: Suite, wanted: str | None) -> Sequence[Case]:
    """The cases whose names have ``wanted`` in them, in any case."""
    cases = suite.file.cases
    return [each for each in cases if wanted is None or wanted.lower() in each.name.lower()]
