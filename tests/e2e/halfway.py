"""A job stopped half-way, and copies of its checkpoint to do things to.

The first half of a stream was read in three batches; partial matches are open, events wait for the
watermark. The second half is in the topic. A copy goes on in output topics of its own.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from spark_cep.compiler.rule_set import compile_rules
from spark_cep.config import Settings
from spark_cep.model import Coordinates
from spark_cep.pipeline.driver.observe.progress import BatchReport
from spark_cep.pipeline.driver.service import Service
from spark_cep.pipeline.wire.reports import Count
from spark_cep.rules.sources.folder import read_rules
from tests.e2e.outputs import Outputs
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.reference.local import LocalJob, Record

EVENTS, BATCHES, KEYS = 400, 3, 25
STATE: dict[str, Any] = {"bucket_size": "1 KiB", "state_partitions": 2}
_TIME = {"allowed_disorder": "15 seconds"}
_END = 1_000_000.0
_RULES = (
    sequence("abc", "a", "followed_by b", "followed_by_any c", within="300 seconds"),
    sequence("strict", "a", "next b", within="200 seconds"),
    sequence("all-keys", "a", "followed_by c", key=None, within="10 seconds"),
)


class Ids(NamedTuple):
    """Sorted ids, those written twice twice."""

    matches: list[str]
    timeouts: list[str]

    @classmethod
    def of(cls, outputs: Outputs) -> Ids:
        """Of what was written."""
        return cls(outputs.match_ids(), outputs.timeout_ids())

    def once(self) -> Ids:
        """The same without those written twice."""
        return Ids(sorted(set(self.matches)), sorted(set(self.timeouts)))


@dataclass
class Copy:
    """A copy of the checkpoint, and the job on it."""

    scenario: Scenario
    checkpoint: Path
    topics: dict[str, str]
    before: Ids
    state: dict[str, Any] = field(default_factory=lambda: dict(STATE))

    def sections(self, **sections: Mapping[str, Any]) -> dict[str, Any]:
        """What is particular in its configuration; ``sections`` add to that."""
        own: dict[str, Any] = {
            "state": {**self.state, "checkpoint": str(self.checkpoint)},
            "outputs": {"topics": self.topics},
            "time": _TIME,
        }
        return {name: {**own.get(name, {}), **sections.get(name, {})} for name in own | sections}

    def settings(self, **sections: Mapping[str, Any]) -> Settings:
        """Its settings."""
        return Settings.model_validate(self.scenario.document(**self.sections(**sections)))

    def finish(self, **sections: Mapping[str, Any]) -> Ids:
        """Run the second half to its end; the ids of both halves."""
        self.scenario.run(**self.sections(**sections))
        ids = Ids.of(self.scenario.outputs(**self.topics))
        return Ids(
            sorted(self.before.matches + ids.matches), sorted(self.before.timeouts + ids.timeouts)
        )

    def run_one_batch(self, records: int) -> None:
        """Run a batch of so many records, and stop; the next may be planned by then."""
        service: Service

        def stop(report: BatchReport) -> None:
            self.scenario.reports.append(report)
            if report.total(Count.RECORDS):
                service.stop()

        sections = self.sections(source={"max_offsets_per_trigger": records})
        service = self.scenario.service(on_batch=stop, **sections)
        service.run()

    def newest(self, folder: str, ending: str = "") -> Path:
        """The file with the largest number in a folder of the checkpoint."""
        found = (self.checkpoint / folder).glob(f"[0-9]*{ending}")
        return max(found, key=lambda file: int(file.name.partition(".")[0]))


class Halfway:
    """The job, the results that the core has for all its events, and copies."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._copies = 0
        for rule in _RULES:
            scenario.rule(rule)
        stream = Stream(scenario)
        self._topic = stream.topic
        chance = random.Random(7)
        names = [(f"k{chance.randrange(KEYS)}", chance.choice("abcx")) for _ in range(EVENTS)]
        events = [(key, name, float(second)) for second, (key, name) in enumerate(names)]
        events.append(("k", "x", _END))
        self.events, self.half = events, EVENTS // 2
        half = self.half
        for batch in range(BATCHES):
            stream.send(*events[half * batch // BATCHES : half * (batch + 1) // BATCHES])
            scenario.run(state=STATE, time=_TIME)
        self.live = {
            rule["id"]: scenario.metric("spark_cep_partial_matches", rule=rule["id"])
            for rule in _RULES
        }
        self.before = Ids.of(scenario.outputs())
        stream.send(*events[half:])
        self.expected = self._core(stream.topic, events)

    def of_second_half(self) -> Ids:
        """The ids of a job that begins with the second half."""
        return self._core(self._topic, self.events, self.half)

    def _core(self, topic: str, events: list[tuple[str, str, float]], begin: int = 0) -> Ids:
        job = LocalJob(compile_rules(read_rules(self.scenario.rules_folder).enabled))
        records = [
            Record(
                Coordinates(topic, 0, offset),
                at(seconds),
                {"k": key, "name": name, "v": 0.0},
                input="events",
                type="e2e.Event",
            )
            for offset, (key, name, seconds) in enumerate(events)
            if offset >= begin
        ]
        job.advance(records, at(_END) - 15_001)
        found = job.outputs
        return Ids(
            sorted(match.match_id for match in found.matches),
            sorted(timeout.match_id for timeout in found.timeouts),
        )

    def copy(self, folder: Path, damage: Callable[[Copy], None] | None = None) -> Copy:
        """A copy of the checkpoint below ``folder``, with output topics of its own."""
        self._copies += 1
        # The output of a checkpoint is known by its name.
        name = f"copy-{self._copies}"
        topics = {kind: self.scenario.topic(f"{name}-{kind}") for kind in Outputs.KINDS}
        copy = Copy(self.scenario, folder / name, topics, self.before)
        shutil.copytree(self.scenario.folder / "checkpoint", copy.checkpoint)
        if damage is not None:
            damage(copy)
        return copy
