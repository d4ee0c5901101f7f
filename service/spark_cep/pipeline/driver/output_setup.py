"""Output topics, schemas and delivery, made ready at the start of a run."""

from __future__ import annotations

from spark_cep.codecs.output.avro_results import AvroResults
from spark_cep.codecs.output.outputs import OutputEncoder, OutputTopics
from spark_cep.codecs.output.schemas import schema_text
from spark_cep.codecs.registry.registry import Registry
from spark_cep.config import Settings
from spark_cep.observability.logs import logger
from spark_cep.pipeline.deliver.exactly_once import ExactlyOnce
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
    of_rules = {
        topics.rule_status: COMPACTED,
        topics.rule_audit: KEPT,
        settings.rules.overrides_topic: COMPACTED,
    }
    made = cluster.create_missing(
        topics.all(), {topic: config for topic, config in of_rules.items() if topic is not None}
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
    names = OutputTopics(**topics.model_dump(exclude={"rule_status", "rule_audit"}))
    return OutputEncoder(names, ids, largest=cluster.largest_record(topics.all()))


def start_delivery(
    settings: Settings,
    run: str,
    checkpoint: CheckpointFiles,
    cluster: Cluster,
    retry: RetryPolicy,
) -> ExactlyOnce:
    """Start the delivery of output; from here on an earlier run can write no more."""
    outputs = settings.outputs
    prefix = settings.transactional_id_prefix
    delivery = ExactlyOnce(
        settings.kafka.producer_config(),
        settings.kafka.consumer_config(f"{prefix}.commit-markers"),
        prefix,
        run,
        outputs.transaction_timeout,
    )
    partitions = settings.state.state_partitions
    cluster.create_commit_markers(delivery.markers_topic, partitions)
    go_on = outputs.if_commit_markers_disagree == "go_on"
    retry(lambda: fence_earlier_runs(delivery, partitions, checkpoint, go_on))
    return delivery
