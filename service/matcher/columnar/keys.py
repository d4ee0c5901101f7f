"""Many keys' events and what is remembered of them, for the rules that the kernel runs.

The counterpart of :mod:`service.matcher.keyed` for many keys at once: order, late events and
deadlines are the same, and so are the answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from service.compiler.rule_set import Partitioning
from service.matcher.columnar import kernel
from service.matcher.columnar.matcher import Chains, ColumnarMatcher, Findings, Held
from service.matcher.look_back import LookBacks
from service.matcher.machine import Expired, Failure, Found, limit_failure, skip_failure
from service.matcher.outputs import Outputs, Reporter
from service.matcher.partial import FOREVER, Finished, Taken
from service.model import Event


@dataclass(slots=True)
class KeysState:
    """What is remembered of many keys, which are numbered by their place in ``keys``.

    ``waiting`` are events ahead of the watermark, ``events`` those that partial matches hold.
    """

    keys: list[str | None] = field(default_factory=list)
    waiting: list[Event] = field(default_factory=list)
    waiting_keys: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    held: Held = field(default_factory=Held.nothing)

    @property
    def deadline(self) -> int:
        """The watermark at which something is due; ``FOREVER`` for never."""
        due = min((event.time for event in self.waiting), default=FOREVER)
        return min(due, int(self.held.due.min())) if len(self.held.key) else due

    @property
    def idle(self) -> bool:
        """Whether there is nothing to remember."""
        return not self.waiting and not len(self.held.key)


class KeysMatcher:
    """The rules of a partitioning that the kernel can run, applied to many keys at once."""

    def __init__(self, partitioning: Partitioning, look_backs: Sequence[LookBacks]) -> None:
        self.partitioning = partitioning
        self._matcher = ColumnarMatcher(partitioning)
        self._reporters = [
            Reporter(rule.plan, each)
            for rule, each in zip(partitioning.rules, look_backs, strict=True)
        ]

    def advance(
        self,
        state: KeysState,
        events: Mapping[str | None, Iterable[Event]],
        watermark: int,
        outputs: Outputs,
    ) -> None:
        """Add ``events`` (in any order, none of them late) and move all keys to ``watermark``."""
        numbers = {key: number for number, key in enumerate(state.keys)}
        arrived = list(zip(state.waiting_keys, state.waiting, strict=True))
        for key, mine in events.items():
            number = numbers.setdefault(key, len(numbers))
            arrived += [(number, event) for event in mine]
        ready = sorted(one for one in arrived if one[1].time <= watermark)
        waiting = [one for one in arrived if one[1].time > watermark]
        masks: dict[int, int] = {}
        mask_numbers = [masks.setdefault(event.bits, len(masks)) for _, event in ready]
        known = state.events + [event for _, event in ready]
        run = self._matcher.run(
            state.held,
            np.array([event.time for event in known], np.int64),
            np.array([number for number, _ in ready], np.int64),
            list(masks),
            np.array(mask_numbers, np.int64),
            watermark,
        )
        keys = list(numbers)
        for findings in run:
            self._report(findings, keys, known, outputs)
        # Keys of which nothing is remembered lose their number.
        waiting_keys = np.array([number for number, _ in waiting], np.int64)
        used, moved = np.unique(np.concatenate([run.held.key, waiting_keys]), return_inverse=True)
        state.keys = [keys[number] for number in used.tolist()]
        state.held = run.held._replace(key=moved[: len(run.held.key)])
        state.events = [known[number] for number in run.kept_events.tolist()]
        state.waiting = [event for _, event in waiting]
        state.waiting_keys = moved[len(run.held.key) :].tolist()

    def _report(
        self,
        findings: Findings,
        keys: Sequence[str | None],
        events: Sequence[Event],
        outputs: Outputs,
    ) -> None:
        for key, rule, time, last in zip(
            findings.match_key.tolist(),
            findings.match_rule.tolist(),
            findings.match_time.tolist(),
            _taken(findings.match_chains, events),
            strict=True,
        ):
            match = Finished(_first(last), last, time)
            self._reporters[rule].report(keys[key], Found(matches=[match]), outputs)
        for key, rule, deadline, matched, last in zip(
            findings.timeout_key.tolist(),
            findings.timeout_rule.tolist(),
            findings.timeout_deadline.tolist(),
            findings.timeout_matched.tolist(),
            _taken(findings.timeout_chains, events),
            strict=True,
        ):
            expired = Expired(_first(last), last, deadline, bool(matched))
            self._reporters[rule].report(keys[key], Found(timeouts=[expired]), outputs)
        for key, rule, kind, event, detail in zip(
            findings.failure_key.tolist(),
            findings.failure_rule.tolist(),
            findings.failure_kind.tolist(),
            findings.failure_event.tolist(),
            findings.failure_detail.tolist(),
            strict=True,
        ):
            failure = self._failure(rule, kind, events[event], detail)
            self._reporters[rule].report(keys[key], Found(failures=[failure]), outputs)
        for number in np.flatnonzero(findings.started | findings.dropped).tolist():
            found = Found(
                started=int(findings.started[number]), dropped=int(findings.dropped[number])
            )
            self._reporters[number].report(None, found, outputs)

    def _failure(self, rule: int, kind: int, event: Event, detail: int) -> Failure:
        plan = self.partitioning.rules[rule].plan
        if kind == kernel.LIMIT_REACHED:
            return limit_failure(plan, event, detail)
        return skip_failure(plan, event)


def _taken(chains: Chains, events: Sequence[Event]) -> Iterator[Taken]:
    for number in range(len(chains.ends)):
        last: Taken | None = None
        for step, event in chains.chain(number):
            last = Taken(last, step, events[event])
        assert last is not None
        yield last


def _first(last: Taken) -> Event:
    *_, first = last.chain()
    return first.event
