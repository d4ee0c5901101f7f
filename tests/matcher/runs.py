"""Runs the machine over small streams, in the oracle's terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from service.compiler.rule_set import compile_rules
from service.matcher.local import LocalJob, Record
from service.matcher.outputs import Outputs
from service.model import Coordinates, TakenEvent
from service.pattern.document import load_rules
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


def job(text: str) -> LocalJob:
    """A job for rules in YAML, without ``id`` and ``key`` where there is one."""
    if not text.lstrip().startswith("id:"):
        text = f"id: r\nkey: key\n{text}"
    return LocalJob(compile_rules(one.rule for one in load_rules(text, "rules")))


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


def run(rule: str, events: str, watermark: int = END_OF_TIME) -> LocalJob:
    """The job after the events, at the watermark."""
    one = job(rule)
    one.advance(written(events), watermark)
    return one


def matched(one: LocalJob) -> list[tuple[str, int]]:
    """Matches as text, such as ``a0 b1 b2``, with their times."""
    return sorted((_text(match.steps), match.time) for match in one.outputs.matches)


def timed_out(one: LocalJob) -> list[tuple[str, int, bool]]:
    """Timeouts as text, with deadlines and whether they had matched."""
    found = one.outputs.timeouts
    return sorted((_text(each.steps), each.deadline, each.already_matched) for each in found)


def _text(steps: Mapping[str, Sequence[TakenEvent]]) -> str:
    return " ".join(f"{name}{position}" for name, position in path_of(steps))
