"""Runs the machine over small streams, in the oracle's terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spark_cep.compiler.plan import Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan, compile_rules
from spark_cep.matcher.findings.chains import Chains
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import RuleState, Taken
from spark_cep.matcher.keys import rule_states as states_of
from spark_cep.model import Coordinates, LateEvent, TakenEvent
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.expressions import parse
from spark_cep.pattern.tree import Rule
from spark_cep.pattern.types import INT, STRING, RecordType
from tests.oracle import Answer, Path, Seen
from tests.reference.found import idle
from tests.reference.job import ReferenceJob
from tests.reference.local import LocalJob, Record

KEY = parse("key", steps=frozenset())
END_OF_TIME = 1 << 60
#: What the events of ``stream`` and ``written`` hold.
TYPES = RecordTypes((("", "Event", RecordType({"key": STRING, "name": STRING, "price": INT})),))


def taken_by(chains: Chains, number: int) -> list[tuple[int, int]]:
    """The step and the event of each event of one chain."""
    one = chains.of(np.array([number]))
    return list(zip(one.steps.tolist(), one.events.tolist(), strict=True))


def stream(letters: str, step_ms: int = 1, start: int = 1) -> list[Seen]:
    """One event per letter; ``name`` is the letter and ``price`` its position."""
    return [
        Seen(start + number * step_ms, {"name": letter, "price": number})
        for number, letter in enumerate(letters)
    ]


def records(key: str, events: Sequence[Seen], start: int = 0) -> Iterator[Record]:
    """The events as records of one topic, their positions as offsets."""
    for number, event in enumerate(events, start):
        at = Coordinates("t", 0, number)
        yield Record(at, event.time, {**event.values, "key": key}, type=event.type)


def path_of(steps: Mapping[str, Sequence[TakenEvent]]) -> Path:
    """The events of a match or timeout as the oracle names them."""
    taken = [(event.at.offset, name) for name, events in steps.items() for event in events]
    return tuple((name, position) for position, name in sorted(taken))


@dataclass
class BothMatchers:
    """A job that the reference and the kernel run side by side: after every call, both must have
    found and remember the same."""

    plan: RuleSetPlan
    types: RecordTypes = TYPES

    def __post_init__(self) -> None:
        self.reference = ReferenceJob(self.plan, self.types)
        self.kernel = LocalJob(self.plan, self.types)

    def advance(self, records: Iterable[Record], watermark: int) -> None:
        """As the job's."""
        given = list(records)
        self.reference.advance(given, watermark)
        self.kernel.advance(given, watermark)
        self._agree()

    def reload(self) -> None:
        """As the job's."""
        self.kernel.reload()
        self._agree()

    def _agree(self) -> None:
        assert found_by(self.kernel) == found_by(self.reference)
        assert remembered(self.kernel) == remembered(self.reference)
        self._each_event_is_held_once()

    def _each_event_is_held_once(self) -> None:
        """However many rules and partial matches hold it, and not longer than one does."""
        for matcher, state in zip(self.kernel._matchers, self.kernel._states, strict=True):
            held = {
                (key, taken.event.at, taken.event.time)
                for key, _, rule in states_of(state.keys, state.names, matcher.slots)
                for taken in _taken(rule)
            }
            assert len(state.keys.events) == len(held)

    def rule_states(self) -> Iterator[tuple[str | None, Plan, RuleState]]:
        """What both remember."""
        return self.reference.rule_states()

    @property
    def watermark(self) -> int:
        """Up to where time has come."""
        return self.reference.watermark

    @property
    def outputs(self) -> Outputs:
        """What both found."""
        return self.reference.outputs

    @property
    def late(self) -> list[LateEvent]:
        """What came too late for both."""
        assert self.kernel.late == self.reference.late
        return self.reference.late


def _taken(rule: RuleState) -> Iterator[Taken]:
    for partial in rule.partials:
        yield from partial.last.chain()
    for finished in rule.finished:
        yield from finished.last.chain()


def found_by(job: LocalJob | ReferenceJob) -> tuple[Any, ...]:
    """Everything that a job has found, whatever the order."""
    outputs = job.outputs
    return (
        sorted((m.rule_id, m.match_id, m.time, m.start) for m in outputs.matches),
        sorted(
            (t.rule_id, t.match_id, t.deadline, t.start, t.already_matched)
            for t in outputs.timeouts
        ),
        sorted((d.at, d.reason, d.rule_id or "", d.detail) for d in outputs.dead_letters),
        dict(outputs.counts),
    )


def remembered(job: LocalJob | ReferenceJob) -> dict[tuple[Any, str], Any]:
    """Everything that a job remembers of its rules, as values."""
    return {
        (key, plan.rule.id): (
            [(p.state, p.first.at, _chain(p.last), p.deadline) for p in state.partials],
            [(f.first.at, _chain(f.last), f.time) for f in state.finished],
            state.deadline,
            state.quiet_until,
            state.paused,
            state.limited and not idle(state),
        )
        for key, plan, state in job.rule_states()
    }


def _chain(last: Taken) -> list[tuple[int, Coordinates, int, int]]:
    return [(each.step, each.event.at, each.event.time, each.matched) for each in last.chain()]


def answers(rule: Rule, streams: Mapping[str, Sequence[Seen]]) -> dict[str, Answer]:
    """What both answer to each stream, each as the stream of one key."""
    plan = compile_rules([replace(rule, key=(KEY,))])
    fed = [record for key, events in streams.items() for record in records(key, events)]
    answered = []
    for kind in (ReferenceJob, LocalJob):
        job = kind(plan, TYPES)
        job.advance(fed, END_OF_TIME)
        answered.append({key: Answer({}, {}) for key in streams} | read(job.outputs))
    assert answered[0] == answered[1]
    return answered[0]


def read(outputs: Outputs) -> dict[str, Answer]:
    """Outputs by key; nothing may have been emitted twice."""
    matches: dict[str, dict[Path, int]] = {}
    timeouts: dict[str, dict[tuple[Path, int], bool]] = {}
    for match in outputs.matches:
        mine = matches.setdefault(str(match.key), {})
        path = path_of(match.steps)
        assert path not in mine, f"match emitted twice: {match}"
        mine[path] = match.time
    for timeout in outputs.timeouts:
        due = timeouts.setdefault(str(timeout.key), {})
        end = path_of(timeout.steps), timeout.deadline
        assert end not in due, f"timeout emitted twice: {timeout}"
        due[end] = timeout.already_matched
    keys = {*matches, *timeouts}
    return {key: Answer(matches.get(key, {}), timeouts.get(key, {})) for key in keys}


def compiled(text: str) -> RuleSetPlan:
    """Rules in YAML, without ``id`` and ``key`` where there is one, compiled."""
    if not text.lstrip().startswith("id:"):
        text = f"id: r\nkey: key\n{text}"
    return compile_rules(one.rule for one in load_rules(text, "rules"))


def job(text: str) -> BothMatchers:
    """A job for rules in YAML."""
    return BothMatchers(compiled(text))


def written(text: str, key: str = "k") -> list[Record]:
    """Records from ``a b=3 c@9``: name, price and time; without time, one after the one before.

    The offset is the place in the text.
    """
    made = []
    time = 0
    for number, word in enumerate(text.split()):
        name, _, at = word.partition("@")
        name, _, price = name.partition("=")
        time = int(at) if at else time + 1
        values = {"name": name, "price": int(price) if price else None, "key": key}
        made.append(Record(Coordinates("t", 0, number), time, values))
    return made


def run(rule: str, events: str, watermark: int = END_OF_TIME) -> BothMatchers:
    """The job after the events, at the watermark."""
    one = job(rule)
    one.advance(written(events), watermark)
    return one


def matched(one: BothMatchers) -> list[tuple[str, int]]:
    """Matches as text, such as ``a0 b1 b2``, with their times."""
    return sorted((_text(match.steps), match.time) for match in one.outputs.matches)


def timed_out(one: BothMatchers) -> list[tuple[str, int, bool]]:
    """Timeouts as text, with deadlines and whether they had matched."""
    found = one.outputs.timeouts
    return sorted((_text(each.steps), each.deadline, each.already_matched) for each in found)


def _text(steps: Mapping[str, Sequence[TakenEvent]]) -> str:
    return " ".join(f"{name}{position}" for name, position in path_of(steps))
