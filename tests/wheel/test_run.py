"""The README's commands, on its settings and its rule, and the tutorial's on a topic, where the
wheel is installed."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import time
from datetime import datetime
from io import BytesIO

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from examples.embedded.process import free_ports
from spark_cep.codecs.registry.framing import frame
from tests.docs.tutorial_page import Commands, File, steps
from tests.e2e.outputs import Outputs
from tests.e2e.schemas import MILLIS, record
from tests.kafka_access import KafkaAccess, Sent
from tests.wheel.installed import Environment
from tests.wheel.pages import README, blocks, commands

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.wheel]

_SECONDS = 300
#: The events of the README; the last one moves the watermark.
_EVENTS = (
    ("login_fail", "12:00:01"),
    ("login_fail", "12:00:05"),
    ("login_fail", "12:00:09"),
    ("login_ok", "12:00:14"),
    ("page", "12:00:30"),
)
_LOGIN = record("Login", ts=MILLIS, user_id="string", event_type="string", ip="string")


def _outputs(kafka: KafkaAccess) -> Outputs:
    return Outputs.read(kafka, lambda kind: f"cep.{kind.replace('_', '-')}")


def _send_events(kafka: KafkaAccess, registry: str) -> None:
    schema = Schema(json.dumps(_LOGIN), "AVRO")
    number = SchemaRegistryClient({"url": registry}).register_schema("logins-value", schema)
    sent = []
    for kind, at in _EVENTS:
        value = BytesIO()
        ts = datetime.fromisoformat(f"2026-01-01T{at}+00:00")
        event = {"ts": ts, "user_id": "ann", "event_type": kind, "ip": "10.0.0.7"}
        fastavro.schemaless_writer(value, fastavro.parse_schema(dict(_LOGIN)), event)
        sent.append(Sent(frame(number, value.getvalue())))
    kafka.create_topics({"logins": 1})
    kafka.send("logins", sent)


def test_the_commands_of_the_readme(
    embedded_kafka: KafkaAccess, embedded_registry: str, environment: Environment
) -> None:
    """All of them work, in the README's order; of its four events there is its match."""
    rules = environment.folder / "rules"
    rules.mkdir()
    (rules / "brute-force.yaml").write_text(blocks(README, "yaml")[0], "utf-8")
    (environment.folder / "config.yaml").write_text(blocks(README, "yaml")[1], "utf-8")
    # Addresses and places of this machine; the rest is the README's.
    given = {
        "SPARK_CEP__KAFKA__BOOTSTRAP_SERVERS": embedded_kafka.bootstrap,
        "SPARK_CEP__REGISTRY__URL": embedded_registry,
        "SPARK_CEP__STATE__CHECKPOINT": str(environment.folder / "checkpoint"),
        "SPARK_CEP__OBSERVABILITY__METRICS_PORT": str(free_ports(1)[0]),
        "SPARK_CEP__SPARK__MASTER": "local[2]",
    }
    _send_events(embedded_kafka, embedded_registry)
    told: dict[str, str] = {}
    log = environment.folder / "run.log"
    job: subprocess.Popen[bytes] | None = None
    try:
        for _, *written in commands(README):
            words = ["brute-force" if word == "ID" else word for word in written]
            name = words[0] if words[0] != "rules" else " ".join(words[:2])
            if name == "run" and "--config" in words:
                job = subprocess.Popen(
                    [environment.command, *words],
                    cwd=environment.folder,
                    env=environment.variables(given),
                    stdout=log.open("wb"),
                    stderr=subprocess.STDOUT,
                )
                deadline = time.monotonic() + _SECONDS
                while not _outputs(embedded_kafka).matches:
                    assert job.poll() is None, log.read_text("utf-8")
                    assert time.monotonic() < deadline, log.read_text("utf-8")
                    time.sleep(0.2)
                continue
            if name == "rescale":
                assert job is not None
                job.send_signal(signal.SIGTERM)
                assert job.wait(_SECONDS) == 0, log.read_text("utf-8")
            ran = environment.run(environment.command, *words, more=given, seconds=_SECONDS)
            assert ran.returncode == 0, f"{words}: {ran.stdout}{ran.stderr}"
            told[name] = ran.stdout
    finally:
        if job is not None and job.poll() is None:
            job.kill()
            job.wait()
    assert [*told] == [
        "prepare", "init", "run", "test",
        "check", "doctor", "config", "explain", "tail", "state", "rules list", "rules pause",
        "dead-letters",
        "rescale",
        "reset-clock",
    ]  # fmt: skip
    for name in ("explain", "tail", "state", "rules list"):
        assert "brute-force" in told[name], name
    (match,) = _outputs(embedded_kafka).matches
    assert match.body["key"] == "ann"
    assert [(step["step"], len(step["events"])) for step in match.body["steps"]] == [
        ("fail", 3), ("ok", 1),
    ]  # fmt: skip


def test_the_tutorial_on_a_topic(embedded_kafka: KafkaAccess, environment: Environment) -> None:
    """Its script fills the topic, and its job finds there what the page shows for the file."""
    (environment.folder / "rules").mkdir()
    for step in (step for part in (2, 3, 8) for step in steps(part)):
        if isinstance(step, File):
            (environment.folder / step.name).write_text(step.text, "utf-8")
    told = [line for part in (5, 8) for step in steps(part) if isinstance(step, Commands)
            for line in step.lines if line.startswith(("python", "spark-cep"))]  # fmt: skip
    infer, _, _, send, doctor, run, tail = (
        shlex.split(line.replace("$BROKER", embedded_kafka.bootstrap)) for line in told
    )
    given = {
        "SPARK_CEP__KAFKA__BOOTSTRAP_SERVERS": embedded_kafka.bootstrap,
        "SPARK_CEP__OBSERVABILITY__METRICS_PORT": str(free_ports(1)[0]),
        "SPARK_CEP__SPARK__MASTER": "local[2]",
    }
    programs = {"python": environment.python, "spark-cep": environment.command}
    for program, *words in (infer, send, doctor):
        ran = environment.run(programs[program], *words, more=given, seconds=_SECONDS)
        assert ran.returncode == 0, f"{words}: {ran.stdout}{ran.stderr}"
    log = environment.folder / "run.log"
    job = subprocess.Popen(
        [environment.command, *run[1:]],
        cwd=environment.folder,
        env=environment.variables(given),
        stdout=log.open("wb"),
        stderr=subprocess.STDOUT,
    )
    try:
        deadline = time.monotonic() + _SECONDS
        while not embedded_kafka.read("cards.matches"):
            assert job.poll() is None, log.read_text("utf-8")
            assert time.monotonic() < deadline, log.read_text("utf-8")
            time.sleep(0.2)
        job.send_signal(signal.SIGTERM)
        assert job.wait(_SECONDS) == 0, log.read_text("utf-8")
    finally:
        if job.poll() is None:
            job.kill()
            job.wait()
    ran = environment.run(environment.command, *tail[1:], "--no-follow", more=given)
    (line,) = (line for line in ran.stdout.splitlines() if "  match  " in line)
    assert re.match(r"2026-01-05 10:06:30  match +card-testing +4711 ", line), line
    assert line.endswith("tries=3 shop=phones"), line
