"""The whole job, the batch runner, back-tests, ``why`` and the core alone give the same, however
batches, groups and tasks are cut."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import fastavro
import pytest
import yaml
from typer.testing import CliRunner

from spark_cep.backtest.replay import Replay
from spark_cep.cli.main import app
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.config import Settings
from spark_cep.model import Coordinates
from spark_cep.recorded.events import RecordedEvents, Window
from spark_cep.recorded.opening import open_events
from spark_cep.recorded.topics import open_topics
from spark_cep.rules.rule_set import RuleSet
from spark_cep.rules.sources.folder import read_rules
from spark_cep.runner.batch import RunSettings
from tests.e2e.outputs import Outputs
from tests.e2e.scenario import Scenario
from tests.e2e.stream import EVENT, Stream, at, sequence
from tests.reference.local import LocalJob, Record
from tests.runner.job import RunnerJob

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

EVENTS, PARTITIONS, KEYS, DISORDER = 300, 3, 6, 5.0
ALL_OVER = EVENTS + 1000.0
#: The keys that ``why`` is asked about.
ASKED = ("k0", "k1")
#: An event time that no event can have, in seconds from the beginning.
NEVER = 1e12
CUTS: dict[str, tuple[int, dict[str, Any]]] = {
    "small batches": (70, {"state_partitions": 1}),
    "one stage": (120, {"state_partitions": 2}),
    "small buckets": (200, {"bucket_size": "1 KiB", "state_partitions": 3}),
}


class Ids(NamedTuple):
    """Sorted ids, those written twice twice; partition and offset of late events, and of dead
    letters with their reasons."""

    matches: list[str]
    timeouts: list[str]
    late: list[tuple[int, ...]]
    dead_letters: list[tuple[int | str, ...]]


def _rules() -> list[dict[str, Any]]:
    rising = sequence("rising", "a", "followed_by b", within="40 seconds")
    rising["pattern"][1] |= {"times": "1..2", "where": "name = 'b' AND v > LAST(a.v)"}
    loop = sequence("loop", "c", "followed_by d", "followed_by a", within="30 seconds")
    loop["pattern"][1] |= {"times": "2+", "greedy": True}
    absence = sequence("absence", "d", "not_followed_by c", within="20 seconds")
    skip = sequence("skip", "a", "followed_by_any d", within="30 seconds")
    strict = sequence("strict", "b", "next c", within="1 minute", key=None)
    return [rising, loop, absence, {**skip, "after_match": "skip_past_last_event"}, strict]


@pytest.fixture(scope="module")
def events() -> list[tuple[str, str, float, float, int]]:
    """Key, name, seconds, value, partition: in arrival order, out of order by less than allowed;
    then in each partition one that is late for every cut, and one whose time cannot be; in the end
    one after which everything else is decided."""
    random = Random(20)
    made = []
    for number in range(EVENTS):
        seconds = number + random.uniform(-DISORDER / 2, DISORDER / 2)
        name, value = random.choice("abcdxy"), float(random.randrange(9))
        key = f"k{random.randrange(KEYS)}"
        made.append((key, name, round(seconds, 3), value, random.randrange(PARTITIONS)))
    made += [("k1", "a", float(n), 1.0, n) for n in range(PARTITIONS)]
    made += [("k1", "b", NEVER, 1.0, n) for n in range(PARTITIONS)]
    return made + [("k", "x", ALL_OVER, 0.0, partition) for partition in range(PARTITIONS)]


@pytest.fixture(scope="module")
def runs(
    new_scenario: Callable[[], Scenario], events: list[tuple[str, str, float, float, int]]
) -> dict[str, Ids]:
    """The ids of each cut of the whole job, of the runner and of the core over the same records."""
    scenario = new_scenario()
    for rule in _rules():
        scenario.rule(rule)
    stream = Stream(scenario, partitions=PARTITIONS)
    sent = [stream.event(*event[:4], partition=event[4]) for event in events]
    offsets = stream.send(*sent)
    plan = compile_rules(read_rules(scenario.rules_folder).enabled)
    sound = [
        (event, offset)
        for number, (event, offset) in enumerate(zip(events, offsets, strict=True))
        if not EVENTS <= number < EVENTS + 2 * PARTITIONS
    ]
    runs = {
        name: _alone(job, stream.topic, sound)
        for name, job in (("core", LocalJob(plan)), ("runner", RunnerJob(plan)))
    }
    for name, (most, state) in CUTS.items():
        topics = {kind: scenario.topic(f"{kind}-{most}") for kind in Outputs.KINDS}
        scenario.run(
            source={"max_offsets_per_trigger": most},
            time={"allowed_disorder": f"{round(DISORDER)} seconds"},
            state={"checkpoint": str(scenario.folder / str(most)), **state},
            outputs={"topics": topics},
        )
        assert scenario.reports[-1].batch + 1 >= len(events) // most
        outputs = scenario.outputs(**topics)
        places = ("spark-cep-partition", "spark-cep-offset")
        late = [tuple(int(e.headers[name] or b"") for name in places) for e in outputs.late]
        letters = [
            (e.body["partition"], e.body["offset"], e.body["reason"]) for e in outputs.dead_letters
        ]
        runs[name] = Ids(outputs.match_ids(), outputs.timeout_ids(), sorted(late), sorted(letters))
    document = scenario.document(time={"allowed_disorder": f"{round(DISORDER)} seconds"})
    settings = Settings.model_validate(document)
    config = scenario.folder / "config.yaml"
    config.write_text(yaml.safe_dump(document), "utf-8")
    runs["why"] = _explained(config, stream.topic)
    rules = read_rules(scenario.rules_folder)
    rising = LocalJob(compile_rules([rules.by_id["rising"].rule]))
    asked = [each for each in sound if each[0][0] in ASKED]
    runs["core of what why is asked"] = _alone(rising, stream.topic, asked)
    with ExitStack() as stack:
        runs["backtest"] = _replayed(open_topics(settings, Window(), stack), rules)
    for number in range(PARTITIONS):
        rows = [each for each in events if each[4] == number]
        _write(scenario.folder / "files" / f"{stream.topic}+{number}+0.avro", rows)
    files = open_events(rules.enabled, [str(scenario.folder / "files")], settings)
    runs["backtest of files"] = _replayed(files, rules)
    return runs


def _explained(config: Path, topic: str) -> Ids:
    """The answers of ``spark-cep why`` over a slice of the topic."""
    runner, accounts = CliRunner(), []
    for key in ASKED:
        result = runner.invoke(
            app,
            ["why", "--config", str(config), "--rule", "rising", "--key", key, "--input", topic,
             "--from", "2020-01-01", "--to", "2100-01-01", "--json"],
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        accounts.append(json.loads(result.stdout))
    matches = (match_id for account in accounts for match_id in account["matches"])
    timeouts = (match_id for account in accounts for match_id in account["timeouts"])
    return Ids(sorted(matches), sorted(timeouts), [], [])


def _replayed(events: RecordedEvents, rules: RuleSet) -> Ids:
    settings = RunSettings(allowed_disorder_ms=round(DISORDER) * 1000)
    found = [*Replay(rules, events, settings).run()]
    return Ids(
        sorted(match.match_id for each in found for match in each.objects.matches),
        sorted(timeout.match_id for each in found for timeout in each.objects.timeouts),
        sorted(late.at[1:] for each in found for late in each.results.late),
        sorted((*one.at[1:], one.reason) for each in found for one in each.letters),
    )


def _write(file: Path, events: Sequence[tuple[str, str, float, float, int]]) -> None:
    """An Avro container with the events of a partition, named as a connector from Kafka does."""
    file.parent.mkdir(exist_ok=True)
    records = [{"ts": at(s), "k": key, "name": name, "v": v} for key, name, s, v, _ in events]
    with file.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(dict(EVENT)), records, sync_interval=500)


def _alone(
    job: LocalJob | RunnerJob,
    topic: str,
    events: Sequence[tuple[tuple[str, str, float, float, int], int]],
) -> Ids:
    """The ids of events in time and their offsets."""
    records = [
        Record(
            Coordinates(topic, partition, offset),
            at(seconds),
            {"k": key, "name": name, "v": value},
            input="events",
            type="e2e.Event",
        )
        for (key, name, seconds, value, partition), offset in events
    ]
    job.advance(records, at(ALL_OVER - DISORDER) - 1)
    outputs = job.outputs
    return Ids(
        sorted(m.match_id for m in outputs.matches),
        sorted(t.match_id for t in outputs.timeouts),
        [],
        [],
    )


@pytest.mark.parametrize("cut", [*CUTS, "runner", "backtest", "backtest of files"])
def test_the_same_ids_as_the_core(runs: dict[str, Ids], cut: str) -> None:
    """Loops, look-back, absence, skipping, strict steps: the same matches and timeouts, once."""
    assert len(runs["core"].matches) > 50
    assert len(runs["core"].timeouts) > 20
    assert runs[cut][:2] == runs["core"][:2]


@pytest.mark.parametrize("kind", Ids._fields)
@pytest.mark.parametrize("cut", ["backtest", "backtest of files"])
def test_a_back_test_finds_what_the_job_writes(
    runs: dict[str, Ids], cut: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One by one: matches, timeouts, late events, dead letters with their reasons."""
    found = getattr(runs[cut], kind)
    assert len(found) >= PARTITIONS
    for job in CUTS:
        assert found == getattr(runs[job], kind)
    with capsys.disabled():
        print(f"\n{cut} = job in {len(CUTS)} cuts: {len(found)} {kind} compared")


def test_why_of_a_topic(runs: dict[str, Ids]) -> None:
    """What the account of a key finds in a slice of the topic is what the core finds."""
    assert len(runs["why"].matches) > 3
    assert runs["why"][:2] == runs["core of what why is asked"][:2]
