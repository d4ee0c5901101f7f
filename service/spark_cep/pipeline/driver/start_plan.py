"""The plan of a start: what Kafka, the registry and the source of rules say, while Spark starts."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from spark_cep.codecs.formats import record_format
from spark_cep.codecs.output.outputs import OutputEncoder
from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.codecs.registry.registry import Registry
from spark_cep.observability.compiling import compilation_logged
from spark_cep.observability.logs import logger
from spark_cep.pipeline.compiled_code import prepare
from spark_cep.pipeline.driver.input.batch_limit import mean_size
from spark_cep.pipeline.driver.input.source import DriverFiles
from spark_cep.pipeline.driver.kafka.cluster import Cluster
from spark_cep.pipeline.driver.lifecycle.run import Run
from spark_cep.pipeline.driver.observe.progress import begin_topics
from spark_cep.pipeline.driver.output_setup import output_encoder
from spark_cep.pipeline.driver.rules.job_plan import input_topics
from spark_cep.pipeline.driver.rules.rule_status import RuleStatus
from spark_cep.pipeline.driver.rules.rules_at_start import RulesAtStart
from spark_cep.pipeline.driver.time_control import TimeControl
from spark_cep.pipeline.librdkafka.consumer import check as check_properties
from spark_cep.rules.overrides import OverrideTopic
from spark_cep.rules.sources.configured import source_of

_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class StartPlan:
    """All that is known before Spark is there. ``topics``: those that are read, with Kafka's ids by
    name in ``topic_ids``; ``record_size``: the mean bytes of a record, once it is known."""

    cluster: Cluster
    topics: list[str]
    topic_ids: dict[str, str]
    schemas: RecordFormat
    encoder: OutputEncoder
    rules: RulesAtStart
    overrides: OverrideTopic
    files: DriverFiles
    time: TimeControl
    record_size: Future[float | None]


def plan_start(run: Run, status: RuleStatus, scratch: Path, stack: ExitStack) -> StartPlan:
    """Ask Kafka, the registry and the source of rules; the end of ``stack`` closes the connections.

    Raises ConfigurationError, RuleSetError, RegistryError, SchemaError and StartError; at the limit
    of the start KafkaUnavailableError and RegistryUnavailableError; and StopRequestedError.
    """
    settings, retry = run.settings, run.retries.at_start
    url = None if settings.registry is None else settings.registry.url
    _log.info("checking", kafka=settings.kafka.bootstrap_servers, registry=url)
    source = stack.enter_context(closing(source_of(settings)))
    overrides = OverrideTopic(settings.kafka, settings.rules.overrides_topic)
    stack.enter_context(closing(overrides))
    registry = stack.enter_context(Registry.opened(settings.registry, run.retries.sleep))
    rules = RulesAtStart(settings, source, status, retry)
    check_properties(settings.reader_config())
    cluster = Cluster(settings, run.retries.of_kafka_at_start)
    existing = cluster.topics()
    topics = input_topics(settings, existing)
    begin_topics(run.metrics, topics)
    schemas = retry(lambda: record_format(settings, registry, existing))
    rules.check(schemas)
    encoder = output_encoder(settings, registry, cluster, retry)
    files = DriverFiles.below(scratch)
    ids = cluster.topic_ids(topics)
    time = TimeControl(settings, files, run.id, ids)
    latest = settings.source.starting_offsets == "latest"
    filled = [] if latest else cluster.partitions_with_records(topics)
    time.expect(filled)
    record_size = ThreadPoolExecutor(1, "sample").submit(mean_size, settings, filled)
    # Workers find it in the cache; without, the first batch would wait for each of them.
    with compilation_logged():
        prepare()
    return StartPlan(
        cluster, topics, ids, schemas, encoder, rules, overrides, files, time, record_size
    )
