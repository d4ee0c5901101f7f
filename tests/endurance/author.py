"""Who changes rules: a change every so often, of each kind that there is, by a seed.

Rules are in files of a folder; pauses go to the topic of overrides. A rule that goes is followed by
one with another id, so that what is kept by id would grow.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import yaml

from spark_cep.config import Kafka
from spark_cep.rules.overrides import Override, PauseOrder, write_override
from tests.endurance.stream import KINDS

UNTOUCHED = "untouched"
_SLOTS = 12
#: A rule is left alone for so many changes of others, so that each change is seen by itself.
_REST = 6
_KINDS = (
    *("restart",) * 2, *("drain",) * 2, *("carry",) * 3, *("remove",) * 2, "pause", "wrong",
    "shadow",
)  # fmt: skip


@dataclass(frozen=True)
class Change:
    """What was published, when (in seconds since 1970), and how it shows: the decision of the audit
    topic, and the state on ``/rules``; ``gone`` for none."""

    published: float
    kind: str
    rule: str
    version: int
    decision: str
    state: str


@dataclass(frozen=True)
class _Slot:
    """A rule as it is now; without ``rule`` there is none."""

    rule: dict[str, Any] | None = None
    paused: bool = False
    wrong: bool = False
    touched: int = -_REST


def untouched() -> list[dict[str, Any]]:
    """Twenty rules of five kinds."""
    found = []
    for number in range(20):
        first, second, third = (KINDS[(number + step) % len(KINDS)] for step in range(3))
        rule = _rule(f"{UNTOUCHED}-{number:02d}", first, second, third, 8 + number % 4 * 4)
        match number % 5:
            case 0:
                rule["pattern"][1] |= {"after": "not_followed_by"}
                del rule["pattern"][2]
            case 1:
                rule["pattern"][1] |= {"times": "1..3", "greedy": True}
                rule["after_match"] = "skip_past_last_event"
            case 2:
                rule["pattern"][2]["where"] = f"kind = '{third}' AND v > LAST(q.v)"
            case 3:
                rule["pattern"][2] |= {"after": "followed_by_any"}
                rule["within"] = "6 seconds"
            case _:
                rule["emit"] = {"measures": {"total": "SUM(q.v)", "first": "FIRST(p.v)"}}
        found.append(rule)
    return found


def _rule(name: str, first: str, second: str, third: str, seconds: int) -> dict[str, Any]:
    return {
        "id": name,
        "version": 1,
        "key": "user",
        "pattern": [
            {"step": "p", "where": f"kind = '{first}' AND v < 24"},
            {"step": "q", "after": "followed_by", "where": f"kind = '{second}'"},
            {"step": "r", "after": "followed_by", "where": f"kind = '{third}'"},
        ],
        "within": f"{seconds} seconds",
    }


class Author(threading.Thread):
    """Makes ``count`` changes, one every ``every`` seconds."""

    def __init__(
        self, folder: Path, kafka: Kafka, topic: str, count: int, every: float, seed: int
    ) -> None:
        super().__init__(name="author", daemon=True)
        self._folder, self._kafka, self._topic = folder, kafka, topic
        self._count, self._every = count, every
        self._random = Random(seed)
        self._slots = [_Slot() for _ in range(_SLOTS)]
        self._ids = 0
        self._ended = threading.Event()
        #: All changes so far; what failed.
        self.changes: list[Change] = []
        self.failure: BaseException | None = None
        folder.mkdir()
        for rule in untouched():
            self._write(rule)

    def run(self) -> None:
        """Publish."""
        try:
            due = time.monotonic()
            while len(self.changes) < self._count and not self._ended.is_set():
                self.changes.append(self._change(len(self.changes)))
                due += self._every
                self._ended.wait(max(0.0, due - time.monotonic()))
            self._repair()
        except Exception as error:  # noqa: BLE001  whoever waits for the thread raises it
            self.failure = error

    def end(self) -> None:
        """No more changes."""
        self._ended.set()
        self.join()

    def _repair(self) -> None:
        """What is wrong goes: a first start would refuse it."""
        for number, slot in enumerate(self._slots):
            if slot.wrong and slot.rule is not None:
                self._slots[number] = replace(slot, wrong=False)
                self._write(slot.rule)

    def _change(self, number: int) -> Change:
        rested = [n for n, slot in enumerate(self._slots) if number - slot.touched >= _REST]
        place = self._random.choice(rested)
        slot = self._slots[place]
        kind, after = self._next(slot)
        self._slots[place] = replace(after, touched=number)
        rule = after.rule or slot.rule
        assert rule is not None
        published = time.time()
        match kind:
            case "pause" | "resume":
                order = PauseOrder(reason="endurance") if kind == "pause" else None
                override = Override(by="endurance", pause=order)
                write_override(self._kafka, self._topic, rule["id"], override)
            case "remove":
                (self._folder / f"{rule['id']}.yaml").unlink()
            case "wrong":
                newer = {**rule, "version": rule["version"] + 1, "key": "no_such_column"}
                self._write(newer)
            case _:
                published = self._write(rule)
        told = {"add": "added", "remove": "removed", "pause": "paused", "resume": "resumed"}
        runs = "shadow" if rule.get("mode") == "shadow" else "active"
        states = {"remove": "gone", "pause": "paused", "wrong": "rejected"}
        return Change(
            published,
            kind,
            rule["id"],
            rule["version"],
            "" if kind == "wrong" else told.get(kind, "changed"),
            states.get(kind, runs),
        )

    def _next(self, slot: _Slot) -> tuple[str, _Slot]:
        """A kind of change, and what is there afterwards."""
        draw = self._random
        if slot.rule is None:
            self._ids += 1
            first, second, third = (draw.choice(KINDS) for _ in range(3))
            name = f"changing-{self._ids:04d}"
            rule = _rule(name, first, second, third, draw.randint(4, 20))
            if draw.random() < 0.2:
                rule["mode"] = "shadow"
            return "add", _Slot(rule)
        # A rule may also go while it is paused, or while its file is wrong.
        if (slot.paused or slot.wrong) and draw.random() < 0.2:
            return "remove", _Slot()
        if slot.paused:
            return "resume", replace(slot, paused=False)
        kind = draw.choice(_KINDS)
        if kind == "wrong" and not slot.wrong:
            return kind, replace(slot, wrong=True)
        if kind == "remove":
            return kind, _Slot()
        if kind == "pause" and not slot.wrong:
            return kind, replace(slot, paused=True)
        rule = yaml.safe_load(yaml.safe_dump(slot.rule))
        if kind == "shadow" and not slot.wrong:
            if rule.pop("mode", None) is None:
                rule["mode"] = "shadow"
            return kind, _Slot(rule)
        kind = kind if kind in ("restart", "drain", "carry") else "restart"
        rule |= {"version": rule["version"] + 1 + slot.wrong, "previous_version": kind}
        rule["within"] = f"{draw.randint(4, 20)} seconds"
        where = f"kind = '{draw.choice(KINDS)}' AND v < {draw.randint(20, 60)}"
        absent = draw.random() < 0.3
        rule["pattern"][2] = {
            "step": "r", "after": "not_followed_by" if absent else "followed_by", "where": where,
        }  # fmt: skip
        if kind != "carry":
            rule["pattern"][1]["where"] = f"kind = '{draw.choice(KINDS)}'"
        return kind, _Slot(rule)

    def _write(self, rule: dict[str, Any]) -> float:
        """Put a file in its place at once; when that was."""
        fresh = self._folder / f".{rule['id']}"
        fresh.write_text(yaml.safe_dump(rule, sort_keys=False), "utf-8")
        fresh.replace(self._folder / f"{rule['id']}.yaml")
        return time.time()
