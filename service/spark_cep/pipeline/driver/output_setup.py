"""Output topics, schemas and delivery, made ready at the start of a run."""

from __future__ import annotations

from spark_cep.codecs.output.avro_results import AvroResults
from spark_cep.codecs.output.outputs import OutputEncoder, OutputTopics
from spark_cep.codecs.output.schemas import schema_text
from spark_cep.codecs.registry.registry import Registry
from spark_cep.config import Settings
from spark_cep.observability.logs import logger
from spark_cep.pipeline.deliver.at_least_once import AtLeastOnce
from spark_cep.pipeline.deliver.exactly_once import ExactlyOnce
from spark_cep.pipeline.deliver.output import Delivery
from spark_cep.pipeline.driver.checkpoint.fencing import fence_earlier_runs
from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles
from spark_cep.pipeline.driver.kafka.cluster import Cluster
from spark_cep.pipeline.driver.lifecycle.retry import RetryPolicy
from spark_cep.rules.sources.compacted_topic import COMPACTED
from spark_cep.rules.topic_records import KEPT

_log = logger(__name__)


def output_encoder(
    settings: Settings, registry: Registry, cluster: Cluster, retry: RetryPolicy
) -> OutputEncoder:
    """The encoder, once topics and schemas are there."""
    topics = settings.outputs.topics
    told = {
        topics.rule_status: COMPACTED,
        topics.rule_audit: KEPT,
        settings.rules.overrides_topic: COMPACTED,
    }
    made = cluster.create_missing(
        topics.all(), {topic: config for topic, config in told.items() if topic is not None}
    )
    if made:
        _log.info("topics_created", topics=made)
    ask = registry.register if settings.registry.auto_register else registry.lookup
    ids = retry(
        lambda: AvroResults(
            match=ask(f"{topics.matches}-value", schema_text("match")),
            timeout=ask(f"{topics.timeouts}-value", schema_text("timeout")),
            dead_letter=ask(f"{topics.dead_letters}-value", schema_text("dead-letter")),
            match_row=ask(f"{topics.match_rows}-value", schema_text("match-row")),
        )
    )
    names = OutputTopics(
        topics.matches,
        topics.timeouts,
        topics.late,
        topics.dead_letters,
        topics.shadow,
        topics.match_rows,
    )
    return OutputEncoder(names, ids, largest=cluster.largest_record(topics.all()))


def start_delivery(
    settings: Settings,
    run: str,
    checkpoint: CheckpointFiles,
    cluster: Cluster,
    retry: RetryPolicy,
) -> Delivery:
    """How output is written; from here on an earlier run can write no more."""
    outputs = settings.outputs
    config = settings.kafka.producer_config()
    if outputs.delivery == "at_least_once":
        return AtLeastOnce(config)
    prefix = settings.marks_prefix
    delivery = ExactlyOnce(
        config,
        settings.kafka.consumer_config(f"{prefix}.marks"),
        prefix,
        run,
        outputs.transaction_timeout,
    )
    partitions = settings.state.state_partitions
    cluster.create_marks(delivery.marks_topic, partitions)
    go_on = outputs.if_marks_disagree == "go_on"
    retry(lambda: fence_earlier_runs(delivery, partitions, checkpoint, go_on))
    return delivery
