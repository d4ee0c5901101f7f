"""Small events that most scenarios use: a key, a name, a value and a time, and rules over names."""

from __future__ import annotations

from typing import Any

from spark_cep.codecs.registry.framing import frame
from tests.e2e.scenario import Scenario
from tests.e2e.schemas import MILLIS, record
from tests.kafka_access import Sent

BEGIN = 1_700_000_000_000
EVENT = record("e2e.Event", ts=MILLIS, k="string", name="string", v="double")


def at(seconds: float) -> int:
    """A time in milliseconds, counted in seconds from the beginning of the stream."""
    return BEGIN + round(seconds * 1000)


def sequence(
    rule_id: str, *steps: str, key: str | list[str] | None = "k", **more: Any
) -> dict[str, Any]:
    """A rule over names: ``sequence("r", "a", "followed_by b", within="10 seconds")``."""
    pattern = []
    for text in steps:
        after, _, name = text.rpartition(" ")
        step = {"step": name, "where": f"name = '{name}'"}
        pattern.append({**step, "after": after} if after else step)
    made: dict[str, Any] = {"id": rule_id, "version": 1, "pattern": pattern, **more}
    return made if key is None else {**made, "key": key}


class Stream:
    """An input of such events in one scenario."""

    def __init__(
        self, scenario: Scenario, name: str = "events", *, partitions: int = 1, **settings: Any
    ) -> None:
        self.name = name
        self.topic = scenario.input(name, partitions=partitions, **settings)
        self._scenario = scenario
        self._schema = scenario.register(name, EVENT)

    def event(
        self, k: str, name: str, seconds: float, v: float = 0.0, *, partition: int = 0, **more: Any
    ) -> Sent:
        """One event; ``more`` says more of its record: key, headers, timestamp."""
        datum = {"ts": at(seconds), "k": k, "name": name, "v": v}
        return Sent(self._scenario.avro(self._schema, datum), partition=partition, **more)

    def broken(self) -> Sent:
        """A record that says it has the stream's schema, and ends in the middle of it."""
        return Sent(frame(self._schema, b"broken"))

    def send(self, *events: Sent | tuple[Any, ...]) -> list[int]:
        """Produce events, given as such or as the arguments of :meth:`event`; their offsets."""
        records = [e if isinstance(e, Sent) else self.event(*e) for e in events]
        return self._scenario.send(self.name, *records)
