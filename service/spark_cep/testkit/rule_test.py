"""The test kit's front: a rule set, a virtual clock, the events sent, and what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from spark_cep.compiler.rule_set import compile_rules
from spark_cep.errors import Problem
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.keys import KeysMatcher
from spark_cep.model import Coordinates, LateEvent
from spark_cep.pattern.tree import Rule
from spark_cep.pattern.types import RecordType
from spark_cep.pipeline.match.group_matcher import MakeMatcher
from spark_cep.pipeline.match.watermark import BEGINNING
from spark_cep.rules.plans import plan_for
from spark_cep.runner.values import ValueInputs, ValueRecord
from spark_cep.testkit.explaining import event_lines, rule_lines, section_lines
from spark_cep.testkit.found import FoundResults
from spark_cep.testkit.inputs import KitInputs, Rules, Schema, rule_set
from spark_cep.testkit.kit_runner import KitRunner
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
from spark_cep.testkit.versions import RunVersions
from spark_cep.why.answer import Answer

_END_OF_TIME = 1 << 62


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
        self._schemas = schema, schemas
        self._inputs = KitInputs.of(self._rules, schema, schemas)
        self._now = instant_ms(start, 0)
        self._disorder = None if allowed_disorder is None else duration_ms(allowed_disorder)
        plan = compile_rules(self._rules.enabled, self._inputs.record_types)
        self._sent_types = SentTypes(self._rules.enabled)
        types = ValueInputs(self._inputs.record_types)
        self._runner = KitRunner(self._rules, plan, types, matcher)
        self._versions = RunVersions(self._rules.enabled)
        self._watermark = self._followed(BEGINNING)
        self._outputs = Outputs()
        self._late: list[LateEvent] = []
        self._found = FoundResults(plan.plans)
        self._sent: list[SentEvent] = []
        self._arrived: list[ValueRecord] = []

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
        kind = self._runner.number(source, record)
        number = len(self._sent)
        place = Coordinates(source or "events", 0, number)
        value = ValueRecord.of(place, kind, time, columns_read)
        event = SentEvent(number, moment(time // 1_000), given, source, record, place)
        self._sent.append(event)
        typed = bool(self._inputs.types)
        self._found.sent(event, {} if typed else self._sent_types.check(source, of_type, given))
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
        self._runner.restart()

    def replace(self, rules: Rules) -> None:
        """Change the rules, as when their source holds ``rules`` from now on. A version that is
        replaced ends, drains or is carried over, as ``previous_version`` of the new one says; a
        rule that is not there any more ends. What is new begins behind all events that were sent
        before.

        ``RuleSetError`` when a rule is refused, also as the job refuses it: for one, a version that
        has run with another meaning.
        """
        self._settle(self._watermark)
        new = rule_set(rules)
        inputs = KitInputs.of(new, *self._schemas)
        running = replace(self._rules, loaded=tuple(map(self._inputs.spelled, self._rules.loaded)))
        self._rules = self._versions.changed(running, map(inputs.spelled, new.loaded))
        self._inputs, self._sent_types = inputs, SentTypes(self._rules.enabled)
        plan = plan_for(self._rules, inputs.record_types)
        self._found.know(plan.plans)
        self._outputs.add(self._runner.replace(self._rules, plan, inputs.record_types).outputs)

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
        return self._found.matches(self._outputs)

    @property
    def rows(self) -> list[FoundRow]:
        """The rows of rules with ALL ROWS PER MATCH so far, in the order of release."""
        self._settle(self._watermark)
        return self._found.rows(self._outputs)

    @property
    def timeouts(self) -> list[FoundTimeout]:
        """The partial matches that ran out of time so far."""
        self._settle(self._watermark)
        return self._found.timeouts(self._outputs)

    @property
    def late(self) -> list[LateArrival]:
        """Every event that came late (``outputs.late_events: all``)."""
        self._settle(self._watermark)
        return self._found.late(self._late)

    @property
    def dead_letters(self) -> list[FailedEvent]:
        """Events without key, conditions and measures that failed, limits that were reached."""
        self._settle(self._watermark)
        return self._found.dead_letters(self._outputs)

    @property
    def partial_matches(self) -> list[OpenMatch]:
        """The live partial matches of all rules and keys. Branches that have taken the same events
        are one."""
        return [match for match in self._open_matches() if not match.held_back]

    @property
    def held_matches(self) -> list[OpenMatch]:
        """The matches that a skip strategy holds back while an earlier partial match is alive."""
        return [match for match in self._open_matches() if match.held_back]

    def why(
        self, key: str | None = None, *, rule: str | None = None, version: int | None = None
    ) -> Answer:
        """Why a rule did, or did not, match the events of ``key`` (text, as results have it): what
        each event did to each partial match, by which part of a condition it was passed over, and
        by what partial matches ended. It prints itself.

        ``rule``: the rule's id, where there are several; ``version``: one that has run, where it is
        not the newest. ``ValueError`` when there is none, or the key is missing or too much.
        """
        found = self._one(rule, version)
        # In SQL, NULL is a key as any other.
        if found.key and key is None and found.query is None:
            raise ValueError(f"rule {found.id} has a key: say which")
        if key is not None and not found.key:
            raise ValueError(f"rule {found.id} has no key: leave it out")
        return self._runner.why(found, key)

    def keys(self, *, rule: str | None = None) -> list[str | None]:
        """The keys of the events of a rule, of very many some, in the order of their texts;
        ``None`` alone for a rule without key. ``rule`` as in :meth:`why`."""
        return list(self._runner.keys(self._one(rule)))

    def _one(self, rule: str | None, version: int | None = None) -> Rule:
        """The rule that is meant, once what was sent is handed over."""
        self._settle(self._watermark)
        return self._versions.one(rule, version)

    def explain(self) -> str:
        """Everything that is known, as text: for the message of an assertion."""
        sections: dict[str, Sequence[object]] = {
            "matches": self.matches,
            "rows": self.rows,
            "timeouts": self.timeouts,
            "partial matches": self.partial_matches,
            "matches held back": self.held_matches,
            "dead letters": self.dead_letters,
        }
        if not self.rows:  # most rules have none
            del sections["rows"]
        late = {arrival.event.number for arrival in self.late}
        waiting = {event.number for event in self.waiting}
        found = (*self.matches, *self.timeouts, *self._open_matches())
        taken = {e.number for each in found for events in each.steps.values() for e in events}
        lines = [
            repr(self),
            *rule_lines(self._rules.rules),
            *event_lines(self._sent, late, waiting, taken),
            *(f"warning: {warning.render()}" for warning in self._sent_types.warnings),
            *section_lines(sections),
            *self._runner.ended_lines(self._versions),
        ]
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

    def _settle(self, watermark: int) -> None:
        """Hand over what has arrived, and move the watermark."""
        if self._arrived or watermark > self._watermark:
            arrived, self._arrived = self._arrived, []
            found = self._runner.apply(arrived, self._watermark, watermark)
            self._watermark = max(self._watermark, watermark)
            found.outputs.dead_letters.sort(key=lambda letter: self._found.number(letter.at))
            self._outputs.add(found.outputs)
            self._late += found.late

    def _open_matches(self) -> list[OpenMatch]:
        self._settle(self._watermark)
        return [self._found.open_match(partial) for partial in self._runner.partial_matches()]
