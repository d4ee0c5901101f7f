"""The job on a cluster with executors of their own: what comes out, and what comes to nobody."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from examples.embedded.process import free_ports
from spark_cep.observability import metric_names as names
from tests.e2e.command import Command, running
from tests.e2e.outputs import Outputs
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence
from tests.kafka_access import KafkaAccess, Sent
from tests.secure_broker import PASSWORD, SecureBroker, secure_broker
from tests.standalone_cluster import EXECUTOR_CONF, StandaloneCluster, standalone_cluster

# Several JVMs start at once.
pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900)]

KEYS, ROUNDS, PARTITIONS, DISORDER = 12, 60, 3, 4.0
#: Records of one batch, and the seconds by which some events are late: more than the second half of
#: the events takes, as one of its partitions may arrive before the others.
A_BATCH, LATE = 90, 120
STORE = "marker-store-5e7a"
TIME = {"allowed_disorder": f"{round(DISORDER)} seconds"}
STATE = {"state_partitions": 2}
_SECONDS = 300.0


@dataclass(frozen=True)
class Run:
    """The job on the cluster, and what came of it."""

    command: Command
    cluster: StandaloneCluster
    outputs: Outputs
    locally: Outputs
    metrics: str
    killed: int
    arguments: list[str]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """The broker, with TLS and logins."""
    with secure_broker(tmp_path_factory.mktemp("secure")) as broker:
        yield broker


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    """Master and two workers."""
    with standalone_cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


def _records(stream: Stream) -> list[Sent]:
    """Matches, timeouts, late events and broken records, over all partitions; in the end what
    decides everything before."""
    random = Random(7)
    made = []
    for number in range(ROUNDS * KEYS):
        seconds = number / 4 + random.uniform(-DISORDER / 2, DISORDER / 2)
        if number > KEYS * 20 and number % 45 == 0:
            seconds -= LATE
        partition = random.randrange(PARTITIONS)
        if number % 71 == 0:
            made.append(Sent(b"\1not framed", partition=partition))
        made.append(
            stream.event(
                f"k{random.randrange(KEYS)}",
                random.choice("abcx"),
                round(seconds, 3),
                float(random.randrange(9)),
                partition=partition,
            )
        )
    over = ROUNDS * KEYS / 4 + 1000
    return made + [stream.event("k", "x", over, partition=p) for p in range(PARTITIONS)]


def _ids(outputs: Outputs) -> dict[str, list[Any]]:
    """All that was found, in an order that does not depend on batches."""
    return {
        "matches": outputs.match_ids(),
        "timeouts": outputs.timeout_ids(),
        "late": sorted((record.key or b"", record.value or b"") for record in outputs.late),
        "dead letters": sorted(
            (letter.body["partition"], letter.body["offset"], letter.body["reason"])
            for letter in outputs.dead_letters
        ),
    }


@pytest.fixture(scope="module")
def run(
    secure: SecureBroker,
    cluster: StandaloneCluster,
    registry: str,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """The same job locally and on the cluster. There the first half comes before an executor is
    killed, and the second after; by then the files of certificates and keys are gone."""
    folder = tmp_path_factory.mktemp("cluster-job")
    scenario = Scenario(KafkaAccess(secure.broker.bootstrap), registry, spark, folder)
    for rule in (
        sequence("rising", "a", "followed_by b", within="40 seconds"),
        sequence("absence", "b", "not_followed_by c", within="20 seconds"),
        sequence("strict", "a", "next c", within="1 minute", key=None),
    ):
        scenario.rule(rule)
    scenario.rule(_looking_back())
    stream = Stream(scenario, partitions=PARTITIONS)
    records = _records(stream)
    files = tmp_path_factory.mktemp("files")
    section = secure.login(
        ssl_ca_file=str(shutil.copy(secure.authority.file, files / "ca.pem")),
        ssl_certificate_file=str(shutil.copy(secure.client.certificate, files / "client.pem")),
        ssl_key_file=str(shutil.copy(secure.client.key, files / "client.key")),
    )
    half = len(records) // 2
    stream.send(*records[:half])
    topics = {kind: scenario.topic(f"{kind}-cluster") for kind in Outputs.KINDS}
    document = _document(scenario, cluster, section, topics)
    port = document["observability"]["metrics_port"]
    with running(folder, document) as command:
        command.wait_for(lambda: _records_read(command) >= half, _SECONDS)
        files.rename(files.with_name("gone"))
        arguments = [executor.arguments for executor in cluster.executors()]
        victim = cluster.executors()[0]
        stream.send(*records[half:])
        command.wait_for(lambda: _records_read(command) >= half + 2 * A_BATCH, _SECONDS)
        victim.kill()
        command.wait_for(lambda: _records_read(command) >= len(records), _SECONDS)
        command.wait_for(lambda: len(cluster.executors()) == 2, _SECONDS)
        # The clock may still have something to decide.
        command.wait_for(lambda: command.page("/readyz")[0] == 200, _SECONDS)
        time.sleep(2)
        metrics = command.page("/metrics")[1]
        assert port
        code, _ = command.terminate()
        assert code == 0, command.end_of_log()
    outputs = scenario.outputs(**topics)
    files.with_name("gone").rename(files)
    source = {"max_offsets_per_trigger": A_BATCH}
    locally = scenario.run(kafka=section, time=TIME, state=STATE, source=source)
    return Run(command, cluster, outputs, locally, metrics, victim.number, arguments)


def _looking_back() -> dict[str, Any]:
    rule = sequence("look-back", "b", "followed_by c", within="30 seconds")
    rule["pattern"][1] |= {"times": "1..2", "where": "name = 'c' AND v > LAST(b.v)"}
    return rule


def _document(
    scenario: Scenario, cluster: StandaloneCluster, kafka: dict[str, Any], topics: dict[str, str]
) -> dict[str, Any]:
    port, ui = free_ports(2)
    return scenario.document(
        kafka=kafka | {"sink_properties": {"ssl.keystore.password": STORE}},
        outputs={"topics": topics},
        time=TIME,
        source={"max_offsets_per_trigger": A_BATCH},
        state={"checkpoint": str(scenario.folder / "on-cluster"), **STATE},
        trigger={"mode": "continuous", "latency": "0 ms"},
        spark={
            **cluster.section(),
            "conf": {
                **EXECUTOR_CONF,
                "spark.driver.memory": "1g",
                "spark.local.dir": str(scenario.folder / "scratch"),
                "spark.sql.warehouse.dir": str(scenario.folder / "warehouse"),
                "spark.ui.enabled": True,
                "spark.ui.port": ui,
                "spark.hadoop.fs.s3a.secret.key": STORE,
            },
        },
        observability={
            "metrics_host": "127.0.0.1",
            "metrics_port": port,
            "log_level": "info",
            "log_format": "json",
        },
    )


def _sample(metrics: str, name: str) -> float:
    """The sum of a metric's series."""
    lines = [line for line in metrics.splitlines() if line.startswith((f"{name}{{", f"{name} "))]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def _records_read(command: Command) -> float:
    return _sample(command.page("/metrics")[1], names.RECORDS_CONSUMED.name)


def test_the_same_results_as_locally(run: Run) -> None:
    """Matches, timeouts, late events and dead letters, each once, though an executor was killed."""
    expected = _ids(run.locally)
    assert {kind: bool(found) for kind, found in expected.items()} == dict.fromkeys(expected, True)
    assert _ids(run.outputs) == expected


def test_executors_did_the_work(run: Run) -> None:
    """There were two, and a third in the place of the one that was killed."""
    assert len(run.arguments) == 2
    numbers = {
        int(path.parent.name) for path in run.cluster.folder.glob("worker-*/work/*/*/stderr")
    }
    assert len(numbers) >= 3, numbers
    assert run.killed in numbers


def test_one_place_to_scrape(run: Run) -> None:
    """What executors counted stands on the driver's page."""
    assert _sample(run.metrics, names.MATCHES.name) == len(run.outputs.matches)
    assert _sample(run.metrics, names.DEAD_LETTERS.name) == len(run.outputs.dead_letters)


def test_no_secret_on_the_cluster(run: Run) -> None:
    """Neither in arguments of executors, nor on the master's pages, nor in what workers wrote."""
    seen = "\n".join([*run.arguments, run.cluster.told(), run.cluster.told("/json/")])
    assert "CoarseGrainedExecutorBackend" in seen
    for secret in (STORE, PASSWORD, json.dumps(PASSWORD)[1:-1]):
        assert secret not in seen
        for file in run.cluster.folder.rglob("*"):
            if file.is_file() and file.suffix != ".jar":
                assert secret.encode() not in file.read_bytes(), file


def test_executors_log_like_the_driver(run: Run) -> None:
    """Warnings and errors alone, and no complaint that the log is not configured."""
    for file in run.cluster.folder.glob("worker-*/work/*/*/stderr"):
        text = Path(file).read_text("utf-8", "replace")
        assert " INFO " not in text, file
