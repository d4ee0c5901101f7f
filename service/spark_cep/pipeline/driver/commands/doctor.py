"""Everything that a start needs, tried one after another, without starting a job: nothing is
written but for a transactional id of its own, and a job may run meanwhile.

A start ends at the first thing that is wrong; here all of them are told.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from spark_cep.codecs.formats import record_format
from spark_cep.codecs.registry.registry import Registry
from spark_cep.codecs.registry.settings import no_registry
from spark_cep.config import Settings
from spark_cep.errors import SparkCepError, StartError, StateError
from spark_cep.observability.access import access_to
from spark_cep.pipeline.driver.commands import kafka_checks, machine_checks
from spark_cep.pipeline.driver.commands.machine_checks import Doubt
from spark_cep.pipeline.driver.kafka.cluster import Cluster
from spark_cep.pipeline.driver.output_setup import check_output_schemas, in_avro
from spark_cep.pipeline.driver.rules.job_plan import check_rules, input_topics
from spark_cep.pipeline.librdkafka.consumer import check as check_properties
from spark_cep.pipeline.spark.java import check_version
from spark_cep.pipeline.spark.local_folder import local_folder
from spark_cep.rules.rule_set import RuleSet
from spark_cep.rules.sources.configured import rules_of

#: The time that Kafka has for each answer.
_SECONDS: Final = 10.0
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Tried:
    """One thing that was tried: what was found, or why it cannot be used. ``doubt``: why it may
    harm a job, and what to do."""

    what: str
    found: str = ""
    error: SparkCepError | None = None
    doubt: str = ""


def examine(settings: Settings, seconds: float = _SECONDS) -> Iterator[Tried]:
    """Try Python, Java, memory, compiled code, rules, Kafka with its version, topics, rights,
    transactions and clock, the registry, the checkpoint with its disk, and the pages; ``seconds``:
    how long Kafka has for each answer. What needs one that failed is not tried."""
    examination = _Examination(settings, seconds)
    for _ in examination.steps():
        yield from examination.new
        examination.new.clear()


class _Examination:
    def __init__(self, settings: Settings, seconds: float) -> None:
        self._settings = settings
        self._seconds = seconds
        self.new: list[Tried] = []

    def steps(self) -> Iterator[object]:
        """Yield after each thing that was tried."""
        settings = self._settings
        yield self._try("Python", machine_checks.python)
        yield self._try("Java", check_version)
        yield self._try("memory", lambda: machine_checks.memory(settings))
        yield self._try("compiled code", machine_checks.compiled_code)
        yield (rules := self._try("rules", lambda: rules_of(settings), _counted))
        servers = settings.kafka.bootstrap_servers
        existing = self._try(f"Kafka at {servers}", self._topics, lambda n: f"{len(n)} topics")
        yield existing
        if existing is not None:
            yield from self._of_kafka(existing)
            what = "schemas"
            if settings.registry is not None and _asks_registry(settings):
                what = f"schema registry at {settings.registry.url}"
            yield self._try(what, lambda: self._schemas(existing, rules))
        location = str(settings.state.checkpoint)
        yield self._try(f"checkpoint {location}", self._checkpoint)
        folder = local_folder(location)
        if folder is not None:
            yield self._try("disk of the checkpoint", lambda: machine_checks.disk(folder))
        yield self._try("pages", self._pages)

    def _of_kafka(self, existing: list[str]) -> Iterator[object]:
        """Yield after each thing that was tried of a cluster that answers."""
        settings, seconds = self._settings, self._seconds
        yield self._try("Kafka's version", lambda: kafka_checks.broker_version(settings, seconds))
        topics = self._try("inputs", lambda: input_topics(settings, existing), ", ".join)
        yield topics
        yield self._try("outputs", lambda: self._outputs(existing))
        yield self._try(
            "rights",
            lambda: kafka_checks.check_rights(settings, topics or [], existing, seconds),
        )
        yield self._try("transactions", lambda: kafka_checks.check_transactions(settings, seconds))
        if topics is not None:
            yield self._try("clock", lambda: kafka_checks.check_clock(settings, topics, seconds))

    def _try(self, what: str, ask: Callable[[], _T], shown: Callable[[_T], str] = str) -> _T | None:
        try:
            answer = ask()
        except SparkCepError as error:
            self.new.append(Tried(what, error=error))
            return None
        except Doubt as doubt:
            self.new.append(Tried(what, doubt=str(doubt)))
            return None
        self.new.append(Tried(what, shown(answer)))
        return answer

    def _topics(self) -> list[str]:
        reader = self._settings.kafka.reader_config()
        check_properties(self._settings.reader_config())
        # The input may be read with another login than topics are made with.
        Cluster(self._settings, seconds=self._seconds, config=reader).topics()
        return Cluster(self._settings, seconds=self._seconds).topics()

    def _outputs(self, existing: list[str]) -> str:
        topics, new = self._settings.outputs.topics, self._settings.outputs.create_topics
        wanted = {*topics.all(), topics.rule_status, topics.rule_audit}
        wanted.add(self._settings.rules.overrides_topic)
        missing = ", ".join(sorted({topic for topic in wanted if topic} - set(existing)))
        if missing and not new.enabled:
            raise StartError(
                f"output topics {missing} do not exist; create them, or set"
                " outputs.create_topics.enabled"
            )
        return f"a start makes {missing}" if missing else "all topics exist"

    def _schemas(self, existing: list[str], rules: RuleSet | None) -> str:
        settings = self._settings
        if settings.registry is None and (kinds := in_avro(settings)):
            raise no_registry(f"output records ({', '.join(kinds)})", "outputs.format: json")
        with Registry.opened(settings.registry) as registry:
            schemas = record_format(settings, registry, existing)
            if registry is not None:
                check_output_schemas(settings, registry)
            if rules is not None:
                check_rules(rules, schemas, ends=settings.trigger.ends)
        names = dict.fromkeys(each.name for each in schemas.types)
        return f"{', '.join(names)}; the rules fit" if rules is not None else ", ".join(names)

    def _checkpoint(self) -> str:
        location = str(self._settings.state.checkpoint)
        folder = local_folder(location)
        return self._through_spark(location) if folder is None else _writable(folder)

    def _through_spark(self, location: str) -> str:
        # Slow to import, and to start: what can open another file system is Spark's to know.
        from pyspark.errors import PySparkException

        from spark_cep.pipeline.driver.checkpoint.failures import failure
        from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles
        from spark_cep.pipeline.spark.session import spark_session

        session = spark_session(self._settings)
        try:
            position = CheckpointFiles(session, location).position()
        except PySparkException as error:
            raise failure(error, location) from error
        finally:
            session.stop()
        return _said(None if position is None else position.committed)

    def _pages(self) -> str:
        access_to(self._settings.observability)
        return self._settings.observability.pages_url or "none"


def _writable(folder: Path) -> str:
    """Describe what is in a local folder; StateError where it cannot be made or written into."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        why = "no folder" if not there.is_dir() else "not to be written by this user"
        raise StateError(f"state.checkpoint {folder}: {there} is {why}")
    done = [int(each.name) for each in (folder / "commits").glob("[0-9]*") if each.name.isdigit()]
    return _said(max(done, default=None))


def _asks_registry(settings: Settings) -> bool:
    """Return whether a start asks the registry for anything."""
    return bool(in_avro(settings)) or any(each.asks_registry for each in settings.inputs.values())


def _counted(rules: RuleSet) -> str:
    return f"{len(rules.rules)} valid"


def _said(batch: int | None) -> str:
    return "new: a start begins a checkpoint" if batch is None else f"as of batch {batch}"
