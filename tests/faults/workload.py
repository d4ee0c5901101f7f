"""A stream and a rule set whose results do not depend on how the job's batches are cut.

In the stream are disorder within the bound, the same events twice, records that cannot be read,
and events that are late in whatever batch they come: an hour old, and many batches after others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

from spark_cep.compiler.rule_set import compile_rules
from spark_cep.model import Coordinates
from spark_cep.rules.sources.folder import read_rules
from tests.e2e.outputs import Outputs
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import Sent
from tests.reference.local import LocalJob, Record

PARTITIONS, DISORDER, BATCH = 3, 5.0, 400
_KEYS = 200
_BROKEN = (b"", b"\x01not framed", b"\x00\x00\x00\x00")

#: What identifies a record, by kind of output; equal contents are counted.
Content = dict[str, Counter[Any]]


@dataclass(frozen=True)
class Workload:
    """A stream that was sent, and what the core alone makes of it."""

    expected: dict[str, Counter[Any]]
    records: int


def rules() -> list[dict[str, Any]]:
    """Loops, look-back, absence, skipping, strict steps, a rule without key."""
    rising = sequence("rising", "a", "followed_by b", within="40 seconds")
    rising["pattern"][1] |= {"times": "1..2", "where": "name = 'b' AND v > LAST(a.v)"}
    loop = sequence("loop", "c", "followed_by d", "followed_by a", within="30 seconds")
    loop["pattern"][1] |= {"times": "2+", "greedy": True}
    absence = sequence("absence", "d", "not_followed_by c", within="20 seconds")
    skip = sequence("skip", "a", "followed_by_any d", within="30 seconds")
    strict = sequence("strict", "b", "next c", within="1 minute", key=None)
    return [rising, loop, absence, {**skip, "after_match": "skip_past_last_event"}, strict]


def send(scenario: Scenario, count: int, seed: int) -> Workload:
    """Put ``count`` records and the end of the stream into a new input of the scenario."""
    for rule in rules():
        scenario.rule(rule)
    stream = Stream(scenario, partitions=PARTITIONS)
    random = Random(seed)
    sent: list[Sent] = []
    readable: list[tuple[int, tuple[str, str, float, float]]] = []
    late, broken = [], []
    for number in range(count):
        partition = random.randrange(PARTITIONS)
        kind = random.random()
        key, name = f"k{random.randrange(_KEYS)}", random.choice("abcdxy")
        value = float(random.randrange(9))
        if kind < 0.01:
            broken.append(number)
            sent.append(Sent(random.choice(_BROKEN), partition=partition))
        elif kind < 0.02 and number > 5 * BATCH:
            late.append(number)
            sent.append(stream.event(key, "a", -3600.0 - number, value, partition=partition))
        else:
            # Ten events a second: what is open spans many batches.
            seconds = number / 10 + random.uniform(-DISORDER / 2, DISORDER / 2)
            if kind < 0.05 and readable:
                key, name, seconds, value = readable[-1][1]
            event = (key, name, round(seconds, 3), value)
            readable.append((number, event))
            sent.append(stream.event(*event, partition=partition))
    end = count / 10 + 1000.0
    for partition in range(PARTITIONS):
        readable.append((len(sent), ("k", "x", end, 0.0)))
        sent.append(stream.event("k", "x", end, 0.0, partition=partition))
    offsets = stream.send(*sent)
    expected = _core(scenario, stream.topic, sent, readable, offsets, end)
    expected["late"] = Counter((sent[n].partition, offsets[n], sent[n].value) for n in late)
    expected["dead_letters"] = Counter(
        (sent[n].partition, offsets[n], "not_framed", sent[n].value) for n in broken
    )
    return Workload(expected, len(sent))


def _core(
    scenario: Scenario,
    topic: str,
    sent: list[Sent],
    readable: list[tuple[int, tuple[str, str, float, float]]],
    offsets: list[int],
    end: float,
) -> Content:
    job = LocalJob(compile_rules(read_rules(scenario.rules_folder).enabled))
    job.advance(
        [
            Record(
                Coordinates(topic, sent[number].partition, offsets[number]),
                at(seconds),
                {"k": key, "name": name, "v": value},
                input="events",
                type="e2e.Event",
            )
            for number, (key, name, seconds, value) in readable
        ],
        at(end - DISORDER) - 1,
    )
    return {
        "matches": Counter((m.rule_id, m.match_id) for m in job.outputs.matches),
        "timeouts": Counter((t.rule_id, t.match_id) for t in job.outputs.timeouts),
    }


def content(outputs: Outputs) -> Content:
    """What the output topics hold, in the words of :attr:`Workload.expected`."""
    return {
        "matches": Counter((m.body["rule_id"], m.body["match_id"]) for m in outputs.matches),
        "timeouts": Counter((t.body["rule_id"], t.body["match_id"]) for t in outputs.timeouts),
        "late": Counter(
            (
                int(record.headers["spark-cep-partition"] or b""),
                int(record.headers["spark-cep-offset"] or b""),
                record.value,
            )
            for record in outputs.late
        ),
        "dead_letters": Counter(
            (d.body["partition"], d.body["offset"], d.body["reason"], d.body["record_value"])
            for d in outputs.dead_letters
        ),
    }


def whole(outputs: Outputs) -> Content:
    """Everything the output topics hold, but for the time of writing and what says how far time
    had come when a late event came."""
    return {
        kind: Counter(
            repr(
                (
                    record.key,
                    sorted(h for h in record.headers.items() if h[0] != "spark-cep-watermark"),
                    {k: v for k, v in record.body.items() if k not in ("emitted_at", "failed_at")}
                    or record.value,
                )
            )
            for record in getattr(outputs, kind)
        )
        for kind in Outputs.KINDS
    }


@dataclass(frozen=True)
class Comparison:
    """How the content of the topics differs from what it should be."""

    compared: int
    lost: int
    twice: int
    wrong: int

    @classmethod
    def of(cls, found: Content, wanted: Content) -> Comparison:
        """``twice`` counts surplus copies of what is right, ``wrong`` what should not be there."""
        lost = twice = wrong = compared = 0
        for kind, right in wanted.items():
            here = found[kind]
            compared += right.total()
            lost += (right - here).total()
            for what, surplus in (here - right).items():
                if what in right:
                    twice += surplus
                else:
                    wrong += surplus
        return cls(compared, lost, twice, wrong)

    @property
    def equal(self) -> bool:
        """Whether both hold the same."""
        return not (self.lost or self.twice or self.wrong)
