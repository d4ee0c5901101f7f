"""The test kit's front: a rule set, a virtual clock, the events sent, and what was found."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from spark_cep.columns.compilation import compilation_noticed
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.errors import Problem
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.keys import KeysMatcher
from spark_cep.model import Coordinates, DeadLetter, LateEvent, TakenEvent
from spark_cep.pattern.tree import Rule
from spark_cep.pattern.types import RecordType
from spark_cep.pipeline.match.group_matcher import MakeMatcher
from spark_cep.pipeline.match.watermark import BEGINNING
from spark_cep.pipeline.wire.control import ControlRecord
from spark_cep.runner.batch import Batch, RunSettings
from spark_cep.runner.runner import Runner
from spark_cep.runner.values import ValueInputs, ValueRecord, records_of
from spark_cep.testkit.inputs import KitInputs, Rules, Schema, rule_set
from spark_cep.testkit.results import (
    FailedEvent,
    FoundMatch,
    FoundRow,
    FoundTimeout,
    LateArrival,
    OpenMatch,
    SentEvent,
)
from spark_cep.testkit.sent_types import SentTypes
from spark_cep.testkit.times import (
    Instant,
    duration_ms,
    instant_micros,
    instant_ms,
    instant_text,
    moment,
)
from spark_cep.why.answer import Answer
from spark_cep.why.run import keys_seen, why
from spark_cep.why.text import ended_lines

_END_OF_TIME = 1 << 62
_MOST_EXPLAINED = 100
_MOST_KEYS = 10
#: Results come in one order, so there is one key group.
_SETTINGS = RunSettings(late_events="all", key_groups=1)


def _begins() -> None:
    sys.stderr.write(
        "spark-cep: compiling for this machine, which it does once and which takes up to two"
        " minutes; `spark-cep prepare` does it beforehand\n"
    )


def _ends(seconds: float) -> None:
    sys.stderr.write(f"spark-cep: compiled in {seconds:.0f} s\n")


class RuleTest:
    """Rules under test, run over the events that a test sends.

    Time is event time and moves only when the test says so. The clock begins at ``start``; the
    watermark follows it as in the service, ``allowed_disorder`` and one millisecond behind, so an
    event at the clock's time is never late. With ``allowed_disorder=None`` the watermark stands
    still until :meth:`watermark` moves it. Events are applied, and deadlines decided, when the
    watermark passes them.

    Args:
        rules: A rule, several, or the path of a rule file or of a folder of them.
        start: Where the clock begins.
        allowed_disorder: How far the watermark is behind the clock (``time.allowed_disorder``).
        schema: Avro schema of the events, its file or JSON values: the rules are checked against
            it as by ``spark-cep check --schema``, and the columns of events too.
        schemas: The same by input, where there are several.
        matcher: What makes the matchers of rules, for those that look on as they work.

    Raises:
        RuleSetError: A rule is refused, by itself or against the schema.
        SchemaError: A schema is none.
        ValueError: A time or duration cannot be understood.
    """

    def __init__(
        self,
        rules: Rules,
        *,
        start: Instant = "2026-01-01T00:00:00Z",
        allowed_disorder: str | timedelta | None = "0 ms",
        schema: Schema | None = None,
        schemas: Mapping[str, Schema] | None = None,
        matcher: MakeMatcher = KeysMatcher,
    ) -> None:
        self._rules = rule_set(rules)
        self._inputs = KitInputs.of(self._rules, schema, schemas)
        self._now = instant_ms(start, 0)
        self._disorder = None if allowed_disorder is None else duration_ms(allowed_disorder)
        self._plan = compile_rules(self._rules.enabled, self._inputs.record_types)
        self._values = ValueInputs(self._inputs.record_types)
        self._sent_types = SentTypes(self._rules.enabled)
        with compilation_noticed(_begins, _ends):
            self._runner = Runner(self._plan, self._values, _SETTINGS, matcher=matcher)
        self._matcher = matcher
        self._watermark = self._followed(BEGINNING)
        self._outputs = Outputs()
        self._late: list[LateEvent] = []
        self._step_names = {plan.rule.id: plan.steps for plan in self._plan.plans}
        self._sent: list[SentEvent] = []
        self._event_at: dict[Coordinates, SentEvent] = {}
        self._misfits: dict[Coordinates, Mapping[tuple[str, str], Problem]] = {}
        self._arrived: list[ValueRecord] = []
        self._batches: list[tuple[list[ValueRecord], int, int]] = []

    # What the test does.

    def send(
        self,
        values: Mapping[str, Any] | None = None,
        /,
        *,
        at: Instant | None = None,
        input: str | None = None,  # noqa: A002  the configuration's word
        of_type: str | None = None,
        **columns: Any,
    ) -> SentEvent:
        """Send one event; its columns are ``values`` and ``columns``, all others have the schema's
        default, or are NULL.

        ``at`` is its event time, by default the clock's, which it does not move. ``input`` names
        the input, by default the only one, and ``of_type`` the record type. ``ValueError`` when
        there is no such input, record type or column, or a value does not fit the schema. Without a
        schema, a rule that cannot compute with a value is in :attr:`warnings`.
        """
        given = {**(values or {}), **columns}
        time = self._now * 1_000 if at is None else instant_micros(at, self._now)
        source = self._inputs.input(input)
        record, columns_read = self._inputs.read(source, of_type, given)
        kind = self._number(source, record)
        number = len(self._sent)
        place = Coordinates(source or "events", 0, number)
        value = ValueRecord.of(place, kind, time, columns_read)
        event = SentEvent(number, moment(time // 1_000), given, source, record, place)
        self._sent.append(event)
        self._event_at[place] = event
        if not self._inputs.types:
            self._misfits[place] = self._sent_types.check(source, of_type, given)
        self._arrived.append(value)
        return event

    def advance(self, by: str | timedelta) -> None:
        """Move the clock on, ``"10 minutes"`` for example, and the watermark behind it."""
        self._move(self._now + duration_ms(by))

    def advance_to(self, at: Instant) -> None:
        """Move the clock to ``at``, and the watermark behind it; ``ValueError`` when that is in the
        past."""
        to = instant_ms(at, self._now)
        if to < self._now:
            raise ValueError(f"{at!r} is before the clock's {instant_text(self.now)}")
        self._move(to)

    def watermark(self, at: Instant) -> None:
        """Move the watermark alone: events at or before ``at`` will be late from now on.
        ``ValueError`` when it has passed that already."""
        to = instant_ms(at, self._now)
        if to < self._watermark:
            raise ValueError(f"{at!r} is before the watermark {instant_text(self.watermark_time)}")
        self._settle(to)

    def finish(self) -> None:
        """End the input: everything that waits is applied and every deadline decided
        (``at_end_of_input: decide``). Whatever is sent afterwards is late."""
        self._settle(_END_OF_TIME)

    def restart(self) -> None:
        """Write the state to bytes and read it back, as a stop or crash and a start would."""
        self._settle(self._watermark)
        state = self._runner.snapshot()
        self._runner = Runner(self._plan, self._values, _SETTINGS, state, matcher=self._matcher)

    # What the test looks at.

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules, in the order of their ids."""
        return self._rules.rules

    def columns(
        self,
        input: str | None = None,  # noqa: A002  the configuration's word
        of_type: str | None = None,
    ) -> RecordType | None:
        """The columns of events as the schema has them; ``None`` where nothing is known."""
        return self._inputs.columns(self._inputs.input(input), of_type)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Warnings about the rules, also against the schemas, or else the values sent."""
        sent = self._sent_types.warnings
        return (*self._rules.warnings, *self._inputs.warnings, *sent)

    @property
    def now(self) -> datetime:
        """The clock."""
        return moment(self._now)

    @property
    def watermark_time(self) -> datetime:
        """The watermark."""
        return moment(self._watermark)

    def time(self, at: Instant) -> datetime:
        """The moment that ``at`` means now, to compare results with."""
        return moment(instant_ms(at, self._now))

    @property
    def sent(self) -> list[SentEvent]:
        """Every event sent, in that order."""
        return list(self._sent)

    @property
    def waiting(self) -> list[SentEvent]:
        """The events ahead of the watermark, in the order sent: no rule has seen them yet."""
        late = {arrival.event.number for arrival in self.late}
        ahead = [event for event in self._sent if event.time > self.watermark_time]
        return [event for event in ahead if event.number not in late]

    @property
    def matches(self) -> list[FoundMatch]:
        """The matches of all rules so far, in the order in which they were released: of several
        keys, key by key."""
        self._settle(self._watermark)
        return [
            FoundMatch(
                match.rule_id,
                match.rule_version,
                match.key,
                self._steps(match.steps),
                self._step_names[match.rule_id],
                match.match_id,
                moment(match.time),
                match.measures,
            )
            for match in self._outputs.matches
        ]

    @property
    def rows(self) -> list[FoundRow]:
        """The rows of rules with ALL ROWS PER MATCH so far, in the order of release."""
        self._settle(self._watermark)
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
            for row in self._outputs.rows
        ]

    @property
    def timeouts(self) -> list[FoundTimeout]:
        """The partial matches that ran out of time so far."""
        self._settle(self._watermark)
        return [
            FoundTimeout(
                timeout.rule_id,
                timeout.rule_version,
                timeout.key,
                self._steps(timeout.steps),
                self._step_names[timeout.rule_id],
                timeout.match_id,
                moment(timeout.deadline),
                timeout.already_matched,
                timeout.measures,
                timeout.events_omitted,
            )
            for timeout in self._outputs.timeouts
        ]

    @property
    def late(self) -> list[LateArrival]:
        """Every event that came late (``outputs.late_events: all``)."""
        self._settle(self._watermark)
        return [LateArrival(self._event_at[late.at], moment(late.watermark)) for late in self._late]

    @property
    def dead_letters(self) -> list[FailedEvent]:
        """Events without key, conditions and measures that failed, limits that were reached."""
        self._settle(self._watermark)
        # An event is one dead letter, however many rules miss their key in it.
        letters = {
            letter.at if letter.reason == "missing_key" else number: letter
            for number, letter in enumerate(self._outputs.dead_letters)
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

    @property
    def partial_matches(self) -> list[OpenMatch]:
        """The live partial matches of all rules and keys. Branches that have taken the same events
        are one."""
        return [match for match in self._open_matches() if not match.held_back]

    @property
    def held_matches(self) -> list[OpenMatch]:
        """The matches that a skip strategy holds back while an earlier partial match is alive."""
        return [match for match in self._open_matches() if match.held_back]

    def why(self, key: str | None = None, *, rule: str | None = None) -> Answer:
        """Why a rule did, or did not, match the events of ``key`` (text, as results have it): what
        each event did to each partial match, by which part of a condition it was passed over, and
        by what partial matches ended. It prints itself.

        ``rule``: the rule's id, where there are several. ``ValueError`` when there is none.
        """
        self._settle(self._watermark)
        known = {each.id: each for each in self._rules.enabled}
        if rule is None and len(known) == 1:
            (rule,) = known
        if rule not in known:
            raise ValueError(f"say which rule: {', '.join(known) or 'there is none'}")
        return Answer(why(known[rule], key, self._values, self._replayed()))

    def explain(self) -> str:
        """Everything that is known, as text: for the message of an assertion."""
        lines = [repr(self), *self._rule_lines(), "events:"]
        lines += self._event_lines()
        sections: list[tuple[str, Sequence[object]]] = [
            ("matches", self.matches),
            ("rows", self.rows),
            ("timeouts", self.timeouts),
            ("partial matches", self.partial_matches),
            ("matches held back", self.held_matches),
            ("dead letters", self.dead_letters),
        ]
        if not self.rows:  # most rules have none
            del sections[1]
        for warning in self._sent_types.warnings:
            lines.append(f"warning: {warning.render()}")
        for title, found in sections:
            lines.append(f"{title}:{'' if found else ' none'}")
            lines += [f"  {each!r}" for each in found]
        lines += self._ended_lines()
        return "\n".join(lines)

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{len(found)} {name}"
            for name, found in (
                ("sent", self._sent),
                ("waiting", self.waiting),
                ("late", self.late),
                ("matches", self.matches),
                ("timeouts", self.timeouts),
                ("partial", self.partial_matches),
                ("held back", self.held_matches),
                ("dead letters", self.dead_letters),
            )
        )
        watermark = instant_text(self.watermark_time)
        return f"<RuleTest at {instant_text(self.now)}, watermark {watermark}: {counts}>"

    def _followed(self, before: int) -> int:
        return before if self._disorder is None else max(before, self._now - self._disorder - 1)

    def _move(self, to: int) -> None:
        # What was sent arrived before the watermark moves.
        self._now = to
        self._settle(self._followed(self._watermark))

    def _number(self, source: str, record: str | None) -> int:
        """The number of a record type, which the runner is told of when it is new."""
        known = len(self._values)
        number = self._values.number(source, record)
        if number == known:
            self._runner.use(self._plan, self._values)
        return number

    def _settle(self, watermark: int) -> None:
        """Hand over what has arrived, and move the watermark."""
        if self._arrived or watermark > self._watermark:
            arrived, self._arrived = self._arrived, []
            before = ControlRecord(lower_bound=self._watermark)
            with compilation_noticed(_begins, _ends):
                found = self._runner.apply(Batch(records_of(arrived), before, watermark))
            self._batches.append((arrived, self._watermark, watermark))
            self._watermark = max(self._watermark, watermark)
            found.outputs.dead_letters.sort(key=lambda letter: self._event_at[letter.at].number)
            self._outputs.add(found.outputs)
            self._late += found.late

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

    def _open_matches(self) -> list[OpenMatch]:
        self._settle(self._watermark)
        return [self._open_match(partial) for partial in self._runner.partial_matches()]

    def _open_match(self, partial: PartialMatch) -> OpenMatch:
        return OpenMatch(
            partial.rule_id,
            partial.rule_version,
            partial.key,
            self._steps(partial.steps),
            self._step_names[partial.rule_id],
            None if partial.deadline is None else moment(partial.deadline),
            partial.waits_for,
            partial.forbids,
            partial.absence,
            partial.already_matched,
            partial.held_back,
        )

    def _rule_lines(self) -> Iterable[str]:
        if not self._rules.rules:
            yield "rules: none"
        for rule in self._rules.rules:
            state = "" if rule.enabled else ", not enabled"
            yield f"rule {rule.id} version {rule.version}{state}"

    def _replayed(self) -> Iterator[Batch]:
        """The batches that the runner was given."""
        for arrived, before, watermark in self._batches:
            yield Batch(records_of(arrived), ControlRecord(lower_bound=before), watermark)

    def _ended_lines(self) -> Iterable[str]:
        """Partial matches that ended without a match, and why, of the first keys."""
        for rule in self._rules.enabled:
            for key in keys_seen(rule, self._values, self._replayed())[:_MOST_KEYS]:
                yield from ended_lines(why(rule, key, self._values, self._replayed()))

    def _event_lines(self) -> Iterable[str]:
        late = {arrival.event.number for arrival in self.late}
        waiting = {event.number for event in self.waiting}
        found = (*self.matches, *self.timeouts, *self._open_matches())
        taken = {e.number for each in found for events in each.steps.values() for e in events}
        more = len(self._sent) - _MOST_EXPLAINED
        if more > 0:
            yield f"  … {more} earlier ones"
        for event in self._sent[-_MOST_EXPLAINED:]:
            number = event.number
            state = (
                "late" if number in late
                else "waits for the watermark" if number in waiting
                else "taken" if number in taken
                else "in no match, timeout or partial match"
            )  # fmt: skip
            yield f"  {event!r}: {state}"
