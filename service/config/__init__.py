"""The settings of the service: one typed model, read from a YAML file and the environment.

``load`` is the only reader of the environment. ``kafka``, ``topics``, ``rules``, ``engine`` and
``cluster`` hold the sections; ``sources`` turns texts into settings; ``reference`` writes
the documentation and the JSON Schema.
"""

from service.config.cluster import on_kubernetes
from service.config.engine import Observability, Source, Spark, State, Time, Trigger
from service.config.kafka import Kafka, Security
from service.config.lifecycle import Lifecycle
from service.config.quantities import reveal
from service.config.redaction import spark_redaction_regex, without
from service.config.rules import Rules, RulesTable, RulesTopic, RulesUrl
from service.config.settings import Settings, load
from service.config.topics import (
    KAFKA_TIMESTAMP,
    Input,
    NewTopics,
    Outputs,
    OutputTopics,
    ReaderSchema,
    Registry,
)

__all__ = [
    "KAFKA_TIMESTAMP",
    "Input",
    "Kafka",
    "Lifecycle",
    "NewTopics",
    "Observability",
    "OutputTopics",
    "Outputs",
    "ReaderSchema",
    "Registry",
    "Rules",
    "RulesTable",
    "RulesTopic",
    "RulesUrl",
    "Security",
    "Settings",
    "Source",
    "Spark",
    "State",
    "Time",
    "Trigger",
    "load",
    "on_kubernetes",
    "reveal",
    "spark_redaction_regex",
    "without",
]
