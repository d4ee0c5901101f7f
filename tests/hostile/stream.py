"""Rounds of records: sound events among all that is broken, made up, huge, late or aborted.

Events of a round are an hour of event time. Sound ones are in order in each partition, so none of
them is late however batches are cut, and the core says what must come of them.
"""

from __future__ import annotations

import json
import math
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from confluent_kafka import Message, Producer

from spark_cep.codecs.registry.framing import frame
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.matcher.findings.outputs import Outputs as LocalOutputs
from spark_cep.model import Coordinates
from spark_cep.rules.sources.folder import read_rules
from tests.e2e import poison
from tests.e2e.outputs import each_output
from tests.e2e.scenario import Scenario
from tests.e2e.schemas import record
from tests.e2e.stream import at, sequence
from tests.hostile.mutated import MutatedWriters
from tests.hostile.texts import CONDITIONS
from tests.kafka_access import Sent
from tests.reference.local import LocalJob, Record

HOUR = 3_600.0
PARTITIONS = 2
#: Of all records of a round, but for those of the key with many partial matches.
GARBAGE = 0.3
#: Of all events.
HOT = 0.8
#: As long as a record of the broker's default size may be.
LONG_TEXTS = (
    *((part * 900_000)[:900_000] for part in ("a", "ab", " ", "1", "a" * 60 + "b", "\x00\x1b\n")),
    "é" * 450_000,
)
KEYS = ("", "k1", "k2", "ключ", "k" * 1000, "\x00\x1b[31m\r\n", "\u202eevil", "a,b\\\"'{}")
MOST_PARTIAL_MATCHES = 250_000
_JUMPER, _CROWD, _LONG = "jumper", "crowd", "long"
#: A match of so many events is larger than a record may be; one of fewer than the other is not.
_TOO_LARGE, _SMALL_ENOUGH = 50_000, 5_000
_DAY = 86_400.0
_MADE_UP = 10_000_000
#: To a rule in SQL NULL is a key like others.
_IN_SQL = """SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
  MEASURES COUNT(*) AS n, LAST(b.v) AS v AFTER MATCH SKIP PAST LAST ROW
  PATTERN (a (b | t)+ c) WITHIN INTERVAL '10' MINUTE
  DEFINE a AS k IS NOT NULL AND name = 'a', b AS name = 'b', t AS LENGTH(name) > 1000 OR name = 'x',
    c AS name = 'c' AND NOT v < LAST(b.v))"""
#: Nothing that looks at several rows is compiled: aggregates over expressions, of texts, with
#: DISTINCT, of decimals; order of texts; arrays and maps.
IN_PYTHON = """SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
  MEASURES COUNT(*) AS n, LAST(b.name) AS last_name AFTER MATCH SKIP PAST LAST ROW
  PATTERN (a b{1,20} c) WITHIN INTERVAL '10' MINUTE
  DEFINE a AS k IS NOT NULL AND name = 'a',
    b AS name IN ('b', 'x') AND MAX(b.name) < 'z' AND COUNT(DISTINCT b.mood) <= 2
      AND SUM(b.amount) < 1000 AND SUM(b.n * 2) < 100000,
    c AS name = 'c' AND name > FIRST(b.name) AND SIZE(LAST(b.tags)) = SIZE(tags)
      AND LAST(b.attributes)['a'] = attributes['a'])"""
_LONG_IN_SQL = """SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts
  MEASURES COUNT(m.*) AS n AFTER MATCH SKIP PAST LAST ROW
  PATTERN (o m+ w) WITHIN INTERVAL '30' MINUTE
  DEFINE o AS name = 'o', m AS name = 'm'{}, w AS name = 'w')"""


class Place(NamedTuple):
    """Where a record is."""

    partition: int
    offset: int


@dataclass
class _Planned:
    """A record, and what it is: an event of the core, the reason of a dead letter, or neither."""

    sent: Sent
    event: dict[str, Any] | None = None
    reason: str | None = None


@dataclass
class HostileStream:
    """The topic, and what was sent to it. ``events`` of a round; ``crowd``: how many partial
    matches one key comes to have in it; ``long``: of how many events of one key a match may be."""

    scenario: Scenario
    events: int
    crowd: int
    long: int
    seed: int = 1
    sound: int = 0
    broken: dict[Place, str] = field(default_factory=dict)
    late: set[Place] = field(default_factory=set)
    #: Dead letters that the core says, of rules.
    letters: Counter[tuple[Place, str]] = field(default_factory=Counter)
    rounds: int = 0
    records: int = 0

    def __post_init__(self) -> None:
        scenario = self.scenario
        self.topic = scenario.input("events", partitions=PARTITIONS, record="Event")
        self._nested = scenario.register("events", poison.NESTED)
        self._flat = scenario.register("events", poison.EVENT)
        columns = {name: kind for name, kind in poison.COLUMNS.items() if name != "v"}
        self._unreadable = scenario.register("other", record("e2e.Event", v="string", **columns))
        self.mutated = MutatedWriters(scenario)
        for rule in rules(self.long):
            scenario.rule(rule)
        config = {"message.max.bytes": 1_048_576, "queue.buffering.max.messages": 10_000_000}
        self._producer = Producer(scenario.kafka.config(**config))
        name = uuid.uuid4().hex
        self._aborting = Producer(scenario.kafka.config(**{"transactional.id": name}))
        self._aborting.init_transactions(30)
        self._core = LocalJob(compile_rules(read_rules(scenario.rules_folder).enabled))
        #: Sound events that the core has not seen.
        self._fresh: list[Record] = []
        #: What the core has found: kind and id.
        self._expected: Counter[tuple[str, str]] = Counter()
        #: Rule, key and last event of what the core has found, for messages.
        self._described: dict[str, str] = {}

    def send(self, *, crowd: bool = False, long: bool = False, schemas: int = 0) -> None:
        """One round more; with the crowd of partial matches, with the key of many events, with
        records of so many mutated schemas."""
        random = Random(self.seed * 1_000 + self.rounds)
        planned = list(self._planned(random, crowd=crowd, long=long, schemas=schemas))
        for number, (partition, each) in enumerate(planned):
            self._produce(partition, each)
            if number % (len(planned) // 3) == 1:
                self._abort(random)
        assert self._producer.flush(120) == 0
        self.rounds += 1
        self._follow()

    def compare(self) -> Counter[str]:
        """Sound events came to what the core says, broken records to a dead letter each, and
        nothing was late but what came a day too late. How many outputs there were of each kind."""
        counts: Counter[str] = Counter()
        missing = self._expected.copy()
        letters = Counter(self.broken.items()) + self.letters
        for kind, each in each_output(self.scenario.kafka, self.scenario.topic):
            counts[kind] += 1
            match kind:
                case "matches" | "timeouts":
                    match_id = each.body["match_id"]
                    missing[kind, match_id] -= 1
                    if match_id not in self._described:
                        self._described[match_id] = json.dumps(each.body, default=str)[:2000]
                case "dead_letters":
                    body = each.body
                    letters[Place(body["partition"], body["offset"]), body["reason"]] -= 1
                case "late":
                    headers = [each.headers[f"spark-cep-{at}"] or 0 for at in Place._fields]
                    assert Place(*map(int, headers)) in self.late
        # Those above zero are lost, those below are twice or wrong.
        differing = [
            (kind, self._described.get(match_id, match_id), count)
            for (kind, match_id), count in missing.items()
            if count
        ]
        wrong = [item for item in letters.items() if item[1]]
        found = differing[:20] + wrong[:20]
        assert not found, found
        return counts

    def _follow(self) -> None:
        """Have the core go on to the end of the round."""
        self.sound += len(self._fresh)
        self._core.advance(self._fresh, at(self.rounds * HOUR) - 1)
        self._fresh.clear()
        found, self._core.outputs = self._core.outputs, LocalOutputs()
        for match in found.matches:
            taken = [event.at for events in match.steps.values() for event in events]
            assert not _SMALL_ENOUGH < len(taken) < _TOO_LARGE
            if len(taken) >= _TOO_LARGE:
                self._letter(max(taken, key=lambda at: at.offset), "output_too_large")
            else:
                self._expected["matches", match.match_id] += 1
                last = max(taken, key=lambda at: at.offset)
                self._described[match.match_id] = f"{match.rule_id} {match.key!r:.100} {last}"
        self._expected.update(("timeouts", each.match_id) for each in found.timeouts)
        for letter in found.dead_letters:
            self._letter(letter.at, letter.reason)

    def _letter(self, at: Coordinates, reason: str) -> None:
        self.letters[Place(at.partition, at.offset), reason] += 1

    # What is sent.

    def _planned(
        self, random: Random, *, crowd: bool, long: bool, schemas: int
    ) -> Iterator[tuple[int, _Planned]]:
        start = self.rounds * HOUR
        step = (HOUR - 1) / self.events
        broken = self._broken(start)
        # Some more of each, so that they are a share of all.
        share = round(self.events * GARBAGE / (1 - GARBAGE))
        bad = broken + [self._garbage(random) for _ in range(max(0, share - len(broken)))]
        random.shuffle(bad)
        heavy = {random.randrange(self.events): text for text in LONG_TEXTS}
        crowded = random.randrange(self.events // 4) if crowd else -1
        long_at = random.randrange(self.events // 4) if long else -1
        mutated_at = random.randrange(self.events) if schemas else -1
        due = 0.0
        if self.rounds == 0:
            # Both ends of time; the other one is among the broken records.
            for n, name in enumerate("ab"):
                yield 0, self._event(poison.values("old", name, poison.YEAR_1 + n))
        for number in range(self.events):
            second = start + number * step
            key = "hot" if random.random() < HOT else random.choice(KEYS)
            v = random.choice([math.nan, math.inf, -math.inf, -0.0, 1.5, 2.5])
            values = poison.values(key, random.choice("abcdx"), at(second), v)
            if number in heavy:
                values["name"] = heavy[number]
            headers = [("\x00\x1b[2J\u202e", random.randbytes(8)), ("", b"")]
            partition = number % PARTITIONS
            yield partition, self._event(values, headers if random.random() < 0.1 else [])
            yield from self._beside(number, second, crowded)
            if number == long_at:
                yield from ((partition, each) for each in self._long_key(second))
            if number == mutated_at:
                yield from ((partition, each) for each in self._mutated(random, schemas, second))
            due += len(bad) / self.events
            while due >= 1 and bad:
                due -= 1
                yield random.randrange(PARTITIONS), bad.pop()
        for each in bad:
            yield 0, each
        for partition in range(PARTITIONS):
            yield partition, self._event(poison.values("end", "x", at(start + HOUR)))

    def _beside(self, number: int, second: float, crowded: int) -> Iterator[tuple[int, _Planned]]:
        """What comes with some of the events: the key with many partial matches, a partition that
        jumps back a day, events without key."""
        partition = number % PARTITIONS
        if number == crowded:
            for _ in range(self.crowd):
                yield partition, self._event(poison.values(_CROWD, "p", at(second)))
        elif 0 <= crowded < number and number % 50 == 0:
            # Each is looked at next to all partial matches of its key.
            yield partition, self._event(poison.values(_CROWD, "x", at(second)))
        if number % 200 == 77:
            old = poison.values(_JUMPER, "x", at(second - _DAY))
            yield 1, _Planned(Sent(frame(self._flat, poison.body(old))))
        if number % 100 == 3:
            no_key = poison.body(poison.values("", "b", at(second)), k=poison.number(0))
            yield partition, _Planned(Sent(frame(self._flat, no_key)), reason="missing_key")

    def _long_key(self, second: float) -> Iterator[_Planned]:
        """As many events as a match may have, and then one more than that."""
        for between in (self.long - 2, self.long - 1):
            for name in ("o", *"m" * between, "w"):
                yield self._event(poison.values(_LONG, name, at(second)))

    def _mutated(self, random: Random, count: int, second: float) -> Iterator[_Planned]:
        for each in self.mutated.records(random, count, random.choice(KEYS), at(second)):
            yield _Planned(Sent(each.value), event=each.event, reason=each.reason)

    def _event(self, values: dict[str, Any], headers: Any = ()) -> _Planned:
        sent = Sent(frame(self._flat, poison.body(values)), b"\xff\x00", headers=list(headers))
        return _Planned(sent, event=values)

    def _broken(self, start: float) -> list[_Planned]:
        kinds = poison.broken_kinds(self._flat, self._nested)
        # One without key that is too late is late, so its time is another one.
        found = [
            _Planned(each.sent, reason=each.reason)
            for each in kinds
            if each.reason != "missing_key"
        ]
        readable = poison.body(poison.values("k1", "b", at(start)))
        return [
            *found,
            _Planned(Sent(frame(self._unreadable, readable)), reason="unreadable_schema"),
        ]

    def _garbage(self, random: Random) -> _Planned:
        content = random.randbytes(random.randrange(1, 400))
        match random.randrange(3):
            case 0:
                return _Planned(Sent(b"\x02" + content), reason="not_framed")
            case 1:
                made_up = frame(random.randrange(_MADE_UP, 2**32), content)
                return _Planned(Sent(made_up), reason="unknown_schema_id")
            case _:
                # Neither null nor a time.
                return _Planned(Sent(frame(self._flat, b"\x07" + content)), reason="undecodable")

    def _produce(self, partition: int, planned: _Planned) -> None:
        def delivered(error: Any, message: Message) -> None:
            assert error is None, error
            offset = message.offset()
            assert offset is not None
            place = Place(partition, offset)
            if planned.event is not None:
                self._fresh.append(_record(self.topic, place, planned.event))
            elif planned.reason is not None:
                self.broken[place] = planned.reason
            else:
                self.late.add(place)

        sent = planned.sent
        self._producer.produce(
            self.topic,
            sent.value,
            sent.key,
            partition,
            delivered,
            timestamp=sent.timestamp or 0,  # 0: now
            headers=sent.headers,
        )
        self._producer.poll(0)
        self.records += 1

    def _abort(self, random: Random) -> None:
        """Events that would end matches, and garbage, of a transaction that is given up."""
        assert self._producer.flush(120) == 0
        self._aborting.begin_transaction()
        for _ in range(20):
            values = poison.values("hot", random.choice("bcd"), at(self.rounds * HOUR + 1))
            for value in (frame(self._flat, poison.body(values)), random.randbytes(20)):
                partition = random.randrange(PARTITIONS)
                self._aborting.produce(self.topic, value, partition=partition)
        assert self._aborting.flush(30) == 0
        self._aborting.abort_transaction(30)


def _record(topic: str, place: Place, event: dict[str, Any]) -> Record:
    time = round((event["ts"] - poison.EPOCH).total_seconds() * 1000)
    return Record(Coordinates(topic, *place), time, event, input="events", type="e2e.Event")


def rules(long: int) -> list[dict[str, Any]]:
    """Rules over every column type and text function, one for many partial matches, some in SQL,
    and some whose matches may be of ``long`` events."""
    crowd = sequence("crowd", "p", "followed_by q", within="30 minutes")
    crowd["limits"] = {"partial_matches": MOST_PARTIAL_MATCHES, "events": MOST_PARTIAL_MATCHES}
    limits = {"limits": {"events": long}}
    long_steps = sequence("long", "o", "followed_by m", "followed_by w", within="30 minutes")
    long_steps["pattern"][1] |= {"times": "1+", "greedy": True}
    in_python = " AND COUNT(DISTINCT m.mood) <= 2 AND MAX(m.name) < 'z'"
    made = [
        *poison.rules(),
        crowd,
        {"id": "in-sql", "sql": _IN_SQL},
        {"id": "in-python", "sql": IN_PYTHON},
        {**long_steps, **limits},
        {"id": "long-in-sql", "sql": _LONG_IN_SQL.format(""), **limits},
        {"id": "long-in-python", "sql": _LONG_IN_SQL.format(in_python), **limits},
    ]
    for number, condition in enumerate(CONDITIONS.values()):
        on_long = f"LENGTH(name) > 1000 AND ({condition})"
        made.append(
            {
                "id": f"text-{number}",
                "version": 1,
                "key": "k",
                "pattern": [{"step": "t", "where": on_long}],
            }
        )
    copied: list[dict[str, Any]] = json.loads(json.dumps(made))
    return copied
