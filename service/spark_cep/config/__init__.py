"""The settings of the service: one typed model, read from a YAML file and the environment.

``load`` is the only reader of the environment. ``kafka``, ``topics``, ``rules``, ``engine`` and
``cluster`` hold the sections; ``sources`` turns texts into settings; ``waits`` says what they cost
in latency; ``reference`` writes the documentation and the JSON Schema.
"""

from spark_cep.config.cluster import Spark, on_kubernetes
from spark_cep.config.engine import Observability, Source, StateSettings, Time, Trigger
from spark_cep.config.kafka import Kafka, Security
from spark_cep.config.lifecycle import Lifecycle
from spark_cep.config.quantities import reveal
from spark_cep.config.redaction import spark_redaction_regex, without
from spark_cep.config.rules import Rules, RulesTable, RulesTopic, RulesUrl
from spark_cep.config.settings import GivenSettings, Settings, load, load_with_origins
from spark_cep.config.topics import (
    Input,
    NewTopics,
    OutputSettings,
    OutputTopicNames,
    ReaderSchema,
    SchemaRegistry,
)
from spark_cep.config.waits import waits_of
from spark_cep.event_times import KAFKA_TIMESTAMP

__all__ = [
    "KAFKA_TIMESTAMP",
    "GivenSettings",
    "Input",
    "Kafka",
    "Lifecycle",
    "NewTopics",
    "Observability",
    "OutputSettings",
    "OutputTopicNames",
    "ReaderSchema",
    "Rules",
    "RulesTable",
    "RulesTopic",
    "RulesUrl",
    "SchemaRegistry",
    "Security",
    "Settings",
    "Source",
    "Spark",
    "StateSettings",
    "Time",
    "Trigger",
    "load",
    "load_with_origins",
    "on_kubernetes",
    "reveal",
    "spark_redaction_regex",
    "waits_of",
    "without",
]
