"""The embedded servers: they come up, keep what they promise to keep, and leave nobody behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from examples.embedded import ChildProcess, EmbeddedBroker, EmbeddedRegistry
from spark_cep.errors import StartError

ROOT = Path(__file__).parents[2]
JARS = ROOT / ".work" / "jars"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker with a second, secured listener."""
    folder = tmp_path_factory.mktemp("broker")
    with EmbeddedBroker(folder, JARS, sasl=("alice", "secret")) as running:
        yield running


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRegistry]:
    """A registry that starts empty."""
    with EmbeddedRegistry(tmp_path_factory.mktemp("registry"), JARS) as running:
        yield running


def _produce(config: dict[str, str], topic: str, values: list[bytes]) -> None:
    producer = Producer({**config, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    producer.commit_transaction(30)


def _read(config: dict[str, str], topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer(
        {**config, "group.id": topic, "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe([topic])
    values: list[bytes | None] = []
    deadline = time.monotonic() + 30
    while len(values) < count and time.monotonic() < deadline:
        values += [message.value() for message in consumer.consume(count, 1) if not message.error()]
    consumer.close()
    return values


@pytest.mark.kafka
def test_records_outlive_a_kill(broker: EmbeddedBroker) -> None:
    """A committed transaction is read back after SIGKILL and a restart at the same address."""
    broker.create_topics({"kept": 1}, {"cleanup.policy": "delete"})
    values = [str(number).encode() for number in range(100)]
    config = {"bootstrap.servers": broker.bootstrap}
    _produce(config, "kept", values)
    before = broker.pid
    broker.kill()
    assert broker.pid is None
    broker.restart()
    assert broker.pid != before
    assert _read(config, "kept", len(values)) == values


@pytest.mark.kafka
def test_a_paused_broker_does_not_answer_until_it_is_resumed(broker: EmbeddedBroker) -> None:
    """SIGSTOP makes requests time out; after SIGCONT they are served."""
    admin = broker.admin()
    broker.pause()
    try:
        with pytest.raises(KafkaException):
            admin.list_topics(timeout=1)
    finally:
        # The tests behind this one use it, too.
        broker.resume()
    assert admin.list_topics(timeout=20).brokers


@pytest.mark.kafka
def test_the_secured_listener_wants_the_password(broker: EmbeddedBroker) -> None:
    """SCRAM lets the right client write and read, and no other."""
    broker.create_topics({"secured": 1})
    _produce(broker.sasl_client(), "secured", [b"a"])
    assert _read(broker.sasl_client(), "secured", 1) == [b"a"]
    wrong = broker.sasl_client() | {"sasl.password": "guess"}
    with pytest.raises(KafkaException):
        Producer({**wrong, "log_level": 0}).list_topics(timeout=3)


@pytest.mark.kafka
def test_a_topic_cannot_be_created_twice(broker: EmbeddedBroker) -> None:
    """The error of the broker reaches the caller."""
    broker.create_topics({"once": 2})
    with pytest.raises(KafkaException, match="already exists"):
        broker.create_topics({"once": 2})


def _schema(*fields: str) -> str:
    rows = [{"name": name, "type": "string", "default": ""} for name in fields]
    return json.dumps({"type": "record", "name": "Event", "fields": rows})


@pytest.mark.kafka
def test_the_registry_hands_out_the_ids_of_the_prefix(registry: EmbeddedRegistry) -> None:
    """The id of a registration is that of its version, of the prefix, and leads back to it."""
    context = SerializationContext("event", MessageField.VALUE)
    with SchemaRegistryClient({"url": registry.url}) as client:
        narrow = client.register_schema("event-value", Schema(_schema("a"), "AVRO"))
        wide = client.register_schema("event-value", Schema(_schema("a", "b"), "AVRO"))
        assert narrow != wide
        assert client.get_latest_version("event-value").schema_id == wide
        body = AvroSerializer(client, _schema("a", "b"))({"a": "x", "b": "y"}, context)
    assert body is not None
    assert body[:5] == b"\0" + wide.to_bytes(4, "big")
    with SchemaRegistryClient({"url": registry.url}) as fresh:
        assert fresh.get_schema(wide).schema_str == _schema("a", "b")
        assert AvroDeserializer(fresh)(body, context) == {"a": "x", "b": "y"}


@pytest.mark.kafka
def test_the_registry_refuses_an_incompatible_schema(registry: EmbeddedRegistry) -> None:
    """A changed type is incompatible under BACKWARD, one more field with a default is not."""
    retyped = _schema("a").replace('"default": ""', '"default": 0').replace('"string"', '"int"')
    with SchemaRegistryClient({"url": registry.url}) as client:
        client.register_schema("checked-value", Schema(_schema("a"), "AVRO"))
        client.set_compatibility("checked-value", "BACKWARD")
        assert client.test_compatibility("checked-value", Schema(_schema("a", "b"), "AVRO"))
        assert not client.test_compatibility("checked-value", Schema(retyped, "AVRO"))


def test_a_server_that_ends_is_reported_with_its_log(tmp_path: Path) -> None:
    """StartError carries the exit code and what the process wrote."""
    command = [sys.executable, "-c", "print('no such port'); raise SystemExit(3)"]
    child = ChildProcess("the server", command, tmp_path / "log", folder=tmp_path)
    with pytest.raises(StartError, match=r"the server ended with exit code 3(?s:.*)no such port"):
        child.start(lambda: False)


def test_a_server_that_is_never_ready_is_killed(tmp_path: Path) -> None:
    """After the limit nothing is left running."""
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    child = ChildProcess("the server", command, tmp_path / "log", folder=tmp_path)
    with pytest.raises(StartError, match=r"was not ready within 0\.2 s"):
        child.start(lambda: False, within=0.2)
    assert not child.running


def test_stop_kills_what_does_not_listen(tmp_path: Path) -> None:
    """A process that ignores SIGTERM, or is paused, is gone after its grace."""
    source = (
        "import pathlib, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "pathlib.Path('up').touch()\n"
        "time.sleep(60)\n"
    )
    child = ChildProcess("x", [sys.executable, "-c", source], tmp_path / "log", folder=tmp_path)
    child.start((tmp_path / "up").exists)
    child.pause()
    child.stop(grace=0.2)
    assert not child.running
    child.stop()


def test_a_child_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    """Only the end of the process ends the child, not the end of a thread."""
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    child = ChildProcess("x", command, tmp_path / "log", folder=tmp_path)
    thread = threading.Thread(target=child.start, args=(lambda: True,))
    thread.start()
    thread.join()
    time.sleep(0.3)
    with child:
        assert child.running


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of this death")
def test_a_child_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """SIGKILL of the parent takes the child with it."""
    source = (
        "import pathlib, sys, time\n"
        "from examples.embedded import ChildProcess\n"
        "here = pathlib.Path(sys.argv[1])\n"
        "command = [sys.executable, '-c', 'import time; time.sleep(60)']\n"
        "child = ChildProcess('x', command, here / 'log', folder=here)\n"
        "child.start(lambda: True)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", source, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert _alive(child)
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 5
    while _alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(child)


def _alive(pid: int) -> bool:
    """Whether the process runs; one that ended but was not yet collected does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
