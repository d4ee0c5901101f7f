"""The files of a new job: settings, a rule with its test, the schema, Kafka for a laptop, CI."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_cep.cases.document.files import suites
from spark_cep.cases.running.outcome import outcome
from spark_cep.cases.writing.accepting import accept
from spark_cep.cases.writing.case_text import CaseHeader, case_text
from spark_cep.cases.writing.tapping import disorder_of, event_time_column, tapped_events
from spark_cep.cli.saving import save
from spark_cep.cli.setup.first_rule import RULE_ID, FirstRule
from spark_cep.cli.setup.sample import Sample
from spark_cep.config import KAFKA_TIMESTAMP
from spark_cep.pattern.document.loading import load_rules
from spark_cep.recorded.events import Window

CONFIG: Final = "config.yaml"
RULE: Final = f"rules/{RULE_ID}.yaml"
CASES: Final = f"rules/{RULE_ID}.cases.yaml"
COMPOSE: Final = "compose.yaml"
WORKFLOW: Final = ".github/workflows/rules.yaml"

_CONFIG: Final = """\
# Settings of the job. Relative paths start at the folder of this file; docs/configuration.md lists
# every setting. To see what counts: spark-cep config show --config config.yaml

kafka:
  bootstrap_servers: {servers}

{registry}# Rules call inputs by these names.
inputs:
  {input}:
    topics: [{topic}]
{details}
outputs:
{format}  topics:
    matches: {topic}.matches
    timeouts: {topic}.timeouts
    late: {topic}.late
    dead_letters: {topic}.dead-letters
  # Transactions and commit markers go by this name: each job on a cluster has its own.
  transactional_id_prefix: spark-cep-{input}

time:
  # Without it, what the newest events decide waits for newer ones, for ever.
  advance_when_idle: 10 seconds

rules:
  folder: rules

state:
  checkpoint: checkpoint
"""

_REGISTRY: Final = """\
registry:
  url: {url}

"""

#: Results in JSON need no registry.
_JSON_RESULTS: Final = "  format: json\n"

_COMPOSE: Final = """\
# {what} for this machine, without security:
#
#     docker compose up --detach
#     spark-cep doctor --config config.yaml
#     spark-cep run --config config.yaml
#
# The job makes its output topics itself.

services:
  broker:
    image: apache/kafka:4.1.1
    hostname: broker
    ports: ["9092:9092"]
    environment:
      KAFKA_NODE_ID: 1
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@broker:29093
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_INTER_BROKER_LISTENER_NAME: INSIDE
      KAFKA_LISTENERS: CONTROLLER://:29093,INSIDE://:19092,OUTSIDE://:9092
      KAFKA_ADVERTISED_LISTENERS: INSIDE://broker:19092,OUTSIDE://localhost:9092
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: CONTROLLER:PLAINTEXT,INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT
      KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: 1
      KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR: 1
      KAFKA_TRANSACTION_STATE_LOG_MIN_ISR: 1
      KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS: 0
      CLUSTER_ID: 4L6g3nShT-eMCtK--X86sw
"""

_COMPOSED_REGISTRY: Final = """
  registry:
    image: confluentinc/cp-schema-registry:8.0.0
    depends_on: [broker]
    ports: ["8081:8081"]
    environment:
      SCHEMA_REGISTRY_HOST_NAME: registry
      SCHEMA_REGISTRY_LISTENERS: http://0.0.0.0:8081
      SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS: broker:19092
"""

_WORKFLOW: Final = """\
# Checks the rules and runs their test cases with each change. It needs neither Kafka nor Java.
name: rules
on: [push, pull_request]
jobs:
  rules:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install 'spark-cep[fmt]'
      - run: spark-cep fmt --check rules
      - run: spark-cep check rules --schema {schema} --strict --format github
      - run: spark-cep test rules
"""


@dataclass(frozen=True)
class KafkaPlace:
    """The Kafka cluster, registry and topic of the settings, and the format of its records; without
    a registry, results are JSON."""

    servers: str = "localhost:9092"
    registry: str | None = None
    topic: str = ""
    is_json: bool = False


def config_text(place: KafkaPlace, name: str, details: Mapping[str, str]) -> str:
    """The settings; ``details``: of the input ``name``, besides its topic."""
    lines = "".join(f"    {setting}: {value}\n" for setting, value in details.items())
    return _CONFIG.format(
        servers=place.servers,
        registry="" if place.registry is None else _REGISTRY.format(url=place.registry),
        format=_JSON_RESULTS if place.registry is None else "",
        input=name,
        topic=place.topic or name,
        details=lines,
    )


def schema_file(name: str) -> str:
    """The place of the schema of an input."""
    return f"schemas/{name}.avsc"


def write_files(
    folder: Path, sample: Sample, rule: FirstRule, place: KafkaPlace, *, compose: bool
) -> list[str]:
    """Write all files of a job into an empty folder; returns their names. The test expects what
    the rule finds."""
    schema = schema_file(sample.input)
    texts: dict[str, Callable[[], str]] = {
        CONFIG: lambda: config_text(place, sample.input, _details(sample, place, schema)),
        schema: lambda: json.dumps(sample.schema, indent=2) + "\n",
        RULE: lambda: rule.text,
        CASES: lambda: _case(sample, rule, schema),
        WORKFLOW: lambda: _WORKFLOW.format(schema=schema),
    }
    if compose:
        texts[COMPOSE] = lambda: _compose(place)
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        save(text(), file)
    (suite,) = suites([folder / CASES], {})
    accept([outcome(suite, case) for case in suite.file.cases])
    return list(texts)


def _compose(place: KafkaPlace) -> str:
    if place.registry is None:
        return _COMPOSE.format(what="A Kafka broker")
    return _COMPOSE.format(what="A Kafka broker and a schema registry") + _COMPOSED_REGISTRY


def _details(sample: Sample, place: KafkaPlace, schema: str) -> dict[str, str]:
    column, unit = sample.event_time
    details = {"format": "json"} if place.is_json else {}
    if column != KAFKA_TIMESTAMP:
        details["event_time"] = column
    if unit != "auto":
        details["event_time_unit"] = unit
    if sample.of_type is None:
        details["reader_schema"] = f"{{file: {schema}}}"
    return details


def _case(sample: Sample, rule: FirstRule, schema: str) -> str:
    """A test case of the events of one match."""
    (loaded,) = load_rules(rule.text, RULE)
    window = Window(rule.begin // 1_000, rule.end // 1_000 + 1)
    seen = tapped_events(sample.recorded.within(window), loaded.rule, rule.key)
    within = loaded.rule.within.max_ms or 0
    of_key = "" if rule.key is None else f" of {rule.key}"
    header = CaseHeader(
        name="a match that the sample has",
        comment=f"Events{of_key} as they were seen. To run it: spark-cep test {CASES}",
        rules=Path(RULE).name,
        rule=loaded.rule.id,
        schemas=f"../{schema}",
        event_time=event_time_column(sample.recorded, seen),
        allowed_disorder_ms=disorder_of(seen),
        clock=rule.end + (within + 1) * 1_000,
    )
    return case_text(header, [each.event for each in seen])
