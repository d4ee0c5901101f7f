"""Runs the machine over small streams, in the oracle's terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from service.compiler.rule_set import compile_rules
from service.matcher.local import LocalJob, Record
from service.matcher.outputs import Outputs
from service.model import Coordinates, TakenEvent
from service.pattern.expressions import parse
from service.pattern.tree import Rule
from tests.oracle import Answer, Path, Seen

KEY = parse("key", steps=frozenset())
END_OF_TIME = 1 << 60


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


def answers(rule: Rule, streams: Mapping[str, Sequence[Seen]]) -> dict[str, Answer]:
    """What the machine answers to each stream, each as the stream of one key."""
    job = LocalJob(compile_rules([replace(rule, key=(KEY,))]))
    fed = [record for key, events in streams.items() for record in records(key, events)]
    job.advance(fed, END_OF_TIME)
    return {key: Answer({}, {}) for key in streams} | read(job.outputs)


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
