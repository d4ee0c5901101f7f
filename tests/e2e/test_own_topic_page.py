"""The commands of docs/own-topic.md that need no Spark, on a topic of JSON and one of Avro; the
tutorial's test runs such a job."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import fastavro
import pytest
import yaml
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from typer.testing import CliRunner

from spark_cep.cli.main import app
from spark_cep.codecs.registry.framing import frame
from tests.docs.tutorial_page import ROOT, Commands, File, steps
from tests.e2e.schemas import MILLIS, record
from tests.kafka_access import KafkaAccess, Sent

pytestmark = pytest.mark.kafka

_PAGE = ROOT / "docs" / "own-topic.md"
_TOPIC = "shop.orders"
_ORDER = record("Order", order_id="string", status="string", at=MILLIS, total="double")
#: Of the table of a back-test: the rule's version and its matches.
_MATCH = re.compile(r"^paid-late +1 +1 ", re.MULTILINE)
_STEPS = {part: steps(part, _PAGE) for part in range(6)}
_EVENTS = next(each.text for each in _STEPS[0] if isinstance(each, File)).splitlines()


def _commands(part: int) -> list[str]:
    return [
        line
        for each in _STEPS[part]
        if isinstance(each, Commands)
        for line in each.lines
        if line.startswith("spark-cep")
    ]


def _run(lines: Iterable[str], replaced: dict[str, str]) -> str:
    """Run commands of the page; all of what they say."""
    said = ""
    for line in lines:
        for old, new in replaced.items():
            line = line.replace(old, new)  # noqa: PLW2901  as the shell does
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code == 0, f"{line}: {result.output}"
        said += result.output
    return said


def _write_rule() -> None:
    for each in _STEPS[2]:
        if isinstance(each, File):
            Path(each.name).write_text(each.text, "utf-8")


def test_a_topic_of_json(
    kafka: KafkaAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look takes Kafka's time, and says how to name the column; the rule finds its match,
    and nothing asks a registry."""
    monkeypatch.chdir(tmp_path)
    kafka.create_topics({_TOPIC: 1})
    kafka.send(_TOPIC, [Sent(line.encode()) for line in _EVENTS])
    first, second, _ = _commands(1)
    replaced = {"$BROKER": kafka.bootstrap}
    shown = [each.output for each in _STEPS[1] if isinstance(each, Commands)]
    assert _run([first], replaced) == shown[0]
    shutil.rmtree("shop")
    _run([second], replaced)
    _write_rule()
    assert _MATCH.search(_run(_commands(2), replaced))
    doctor = _run(_commands(3)[:1], replaced)
    assert "schema registry" not in doctor
    assert "a start makes " in doctor
    assert f"{_TOPIC}.matches" in doctor


def test_a_topic_of_avro(
    kafka: KafkaAccess, registry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Schema and event time are those of the subject; ``doctor`` asks for results' schemas."""
    monkeypatch.chdir(tmp_path)
    topic = "avro.orders"
    kafka.create_topics({topic: 1})
    schema = Schema(json.dumps(_ORDER), "AVRO")
    number = SchemaRegistryClient({"url": registry}).register_schema(f"{topic}-value", schema)
    sent = []
    for line in _EVENTS:
        value = BytesIO()
        fastavro.schemaless_writer(value, fastavro.parse_schema(dict(_ORDER)), json.loads(line))
        sent.append(Sent(frame(number, value.getvalue())))
    kafka.send(topic, sent)
    replaced = {"$BROKER": kafka.bootstrap, "$REGISTRY": registry, _TOPIC: topic}
    *_, init = _commands(1)
    assert "the event time is at" in _run([init], replaced)
    _write_rule()
    assert _MATCH.search(_run(_commands(2), replaced))
    assert f"schema registry at {registry}" in _run(_commands(3)[:1], replaced)
    # A registry that does not answer is told here, not five minutes after the start.
    config = Path("shop/config.yaml")
    settings = yaml.safe_load(config.read_text("utf-8"))
    settings["registry"] = {"url": "http://127.0.0.1:1", "max_attempts": 1}
    (source,) = settings["inputs"].values()
    source |= {"format": "json"}
    config.write_text(yaml.safe_dump(settings), "utf-8")
    result = CliRunner().invoke(app, ["doctor", "--config", str(config)])
    assert "failed  schema registry at http://127.0.0.1:1" in result.stdout, result.stdout


def test_a_topic_that_is_not_there(kafka: KafkaAccess, tmp_path: Path) -> None:
    """The nearest one is named."""
    kafka.create_topics({"shop.returns": 1})
    words = ["init", str(tmp_path / "job"), "--topic", "shop.retruns", "-b", kafka.bootstrap]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 3
    assert f"there is no topic shop.retruns on {kafka.bootstrap}; did you mean `shop.returns`?" in (
        result.stderr
    )
