"""All settings of the service, and :func:`load`, the only reader of the environment.

A setting is looked for in the environment (``SPARK_CEP__SECTION__SETTING``), then in the YAML file,
then it has its default. Everything wrong is reported at once, with file and line or variable.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from spark_cep.config.cluster import Spark, check_checkpoint, check_overhead, cluster_conf
from spark_cep.config.engine import (
    CircuitBreakerLimits,
    Observability,
    Source,
    StateSettings,
    Time,
    Trigger,
)
from spark_cep.config.kafka import Kafka
from spark_cep.config.lifecycle import Lifecycle
from spark_cep.config.quantities import SettingsSection, setting
from spark_cep.config.rules import Rules
from spark_cep.config.sources import Origin, Reader
from spark_cep.config.topics import Input, OutputSettings, SchemaRegistry, topic_name
from spark_cep.documents.places import Path as SettingPath
from spark_cep.documents.shapes import Form, Shape
from spark_cep.documents.values import contradiction, refused
from spark_cep.errors import ConfigurationError, Problem, rendered


def _input_name(value: str) -> str:
    parts = value.split("_")
    if (
        not value[:1].isalpha()
        or not all(p.isalnum() and p.isascii() for p in parts)
        or (value != value.lower())
    ):
        raise refused("a name of small letters, digits and single underscores")
    return value


class Settings(SettingsSection):
    """Every setting of the service, by section."""

    kafka: Kafka = setting(..., "The Kafka cluster.")
    inputs: dict[Annotated[str, AfterValidator(_input_name)], Input] = setting(
        ..., "Inputs by name; rules call them by it.", min_length=1
    )
    outputs: OutputSettings = setting(OutputSettings(), "Results.")
    registry: SchemaRegistry | None = setting(
        None, "The schema registry, which inputs and outputs in Avro need."
    )
    time: Time = setting(Time(), "Event time.")
    source: Source = setting(Source(), "Reading.")
    state: StateSettings = setting(..., "State and checkpoint.")
    spark: Spark = setting(Spark(), "The Spark application.")
    trigger: Trigger = setting(Trigger(), "When batches run.")
    lifecycle: Lifecycle = setting(Lifecycle(), "Waiting and stopping.")
    rules: Rules = setting(Rules(), "The rule set.")
    circuit_breaker: CircuitBreakerLimits = setting(
        CircuitBreakerLimits(), "Too many dead letters."
    )
    observability: Observability = setting(Observability(), "Metrics, health and logs.")

    @model_validator(mode="after")
    def _no_circle(self) -> Settings:
        outputs = set(self.outputs.topics.all())
        for name, one in self.inputs.items():
            for topic in one.topics:
                if topic in outputs:
                    raise contradiction(
                        f"{topic} is an output topic as well", f"inputs.{name}.topics"
                    )
        return self

    @model_validator(mode="after")
    def _named_transactions(self) -> Settings:
        if self.outputs.transactional_id_prefix is None:
            try:
                topic_name(f"{self.transactional_id_prefix}.commit-markers")
            except PydanticCustomError:
                raise contradiction(
                    f"spark.app_name {self.spark.app_name!r} cannot be a part of a topic's name, "
                    "so a prefix is needed",
                    "outputs.transactional_id_prefix",
                ) from None
        return self

    @model_validator(mode="after")
    def _executors_can_work(self) -> Settings:
        check_checkpoint(self.spark, str(self.state.checkpoint))
        check_overhead(self.spark, self.state.rocksdb_memory)
        return self

    @property
    def transactional_id_prefix(self) -> str:
        """The beginning of the transactional ids and of the commit markers' topic."""
        return self.outputs.transactional_id_prefix or self.spark.app_name

    @property
    def consumer_group(self) -> str | None:
        """The group whose offsets Kafka is told, if it is."""
        if not self.source.commit_offsets:
            return None
        return self.source.consumer_group or self.spark.app_name

    def with_checkpoint(self, location: str | None) -> Self:
        """These settings with another checkpoint; ``None``: with their own."""
        if location is None:
            return self
        state = self.state.model_copy(update={"checkpoint": location})
        return self.model_copy(update={"state": state})

    def reader_config(self) -> dict[str, Any]:
        """Configuration of the consumer that reads the input; holds secrets."""
        return {**self.kafka.reader_config(), "enable.partition.eof": True}

    def cluster_conf(self) -> dict[str, str]:
        """Spark's settings for its executors; none with a local master."""
        return cluster_conf(self.spark, self.state.rocksdb_memory)


ROOT = Shape(Form.SECTION, Settings)
"""The shape of the whole."""


@dataclass(frozen=True, slots=True)
class GivenSettings:
    """Settings, and the places of those that were given; the others have their defaults."""

    settings: Settings
    origins: Mapping[SettingPath, Origin]


def load(path: Path | None, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings of the file (if any) and the environment, which wins.

    Relative paths start at the folder of the file, or at the working directory without one.
    ``ConfigurationError`` lists everything that is wrong.
    """
    return load_with_origins(path, environ).settings


def load_with_origins(path: Path | None, environ: Mapping[str, str] | None = None) -> GivenSettings:
    """The settings as :func:`load` reads them, with the place of each that was given."""
    folder = Path.cwd() if path is None else path.absolute().parent
    reader = Reader(ROOT, folder, os.environ if environ is None else environ)
    reader.read_defaults()
    if path is not None:
        reader.read_file(path)
    reader.read_environment()
    settings, problems = _validated(reader)
    if settings is None or problems:
        problems.sort(key=lambda problem: problem.span.line if problem.span else 0)
        raise ConfigurationError("\n".join(rendered(problems)), problems)
    return GivenSettings(settings, reader.origins)


def problems_of_text(path: Path, text: str) -> list[Problem]:
    """Everything that is wrong with the text of a configuration file by itself. What its job's
    environment gives is not known: nothing is missing, and references are not followed."""
    reader = Reader(ROOT, path.absolute().parent, None)
    reader.read_defaults()
    reader.read_text(text, str(path))
    _, problems = _validated(reader)
    return problems


def _validated(reader: Reader) -> tuple[Settings | None, list[Problem]]:
    """The settings that were read, where they are valid, and everything that is wrong."""
    problems = list(reader.problems)
    if not reader.is_readable:
        return None, problems
    try:
        return Settings.model_validate(reader.values), problems
    except ValidationError as error:
        return None, [*problems, *reader.explained(error)]
