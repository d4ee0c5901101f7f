"""Output topics, schemas and delivery, made ready at the start of a run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from spark_cep.codecs.output.avro_results import AvroResults
from spark_cep.codecs.output.fields import Contract
from spark_cep.codecs.output.json_results import JsonResults
from spark_cep.codecs.output.outputs import ByContract, OutputEncoder, OutputTopics, ResultEncoder
from spark_cep.codecs.output.schemas import schema_text
from spark_cep.codecs.registry.registry import Registry
from spark_cep.codecs.registry.settings import no_registry
from spark_cep.config import Settings
from spark_cep.config.topics import OutputFormats
from spark_cep.errors import SchemaNotFoundError
from spark_cep.observability.logs import logger
from spark_cep.pipeline.deliver.exactly_once import ExactlyOnce
from spark_cep.pipeline.driver.checkpoint.fencing import fence_earlier_runs
from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles
from spark_cep.pipeline.driver.kafka.cluster import Cluster
from spark_cep.pipeline.driver.lifecycle.retry import RetryPolicy
from spark_cep.rules.sources.compacted_topic import COMPACTED
from spark_cep.rules.topic_records import KEPT

_log = logger(__name__)

_CONTRACTS: Final[Mapping[str, Contract]] = {
    "matches": "match",
    "timeouts": "timeout",
    "match_rows": "match-row",
    "dead_letters": "dead-letter",
}
#: In place of the id of a schema that no record is written with.
_NO_SCHEMA: Final = -1


def output_encoder(
    settings: Settings, registry: Registry | None, cluster: Cluster, retry: RetryPolicy
) -> OutputEncoder:
    """The encoder, once topics and schemas are there."""
    topics = settings.outputs.topics
    if registry is None and (kinds := in_avro(settings)):
        raise no_registry(f"output records ({', '.join(kinds)})", "outputs.format: json")
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
    encoder = retry(lambda: _result_encoder(settings, registry))
    names = OutputTopics(**topics.model_dump(exclude={"rule_status", "rule_audit"}))
    return OutputEncoder(names, encoder, largest=cluster.largest_record(topics.all()))


def in_avro(settings: Settings) -> list[str]:
    """The kinds of output that are written in Avro, for which there has to be a registry."""
    outputs = settings.outputs
    return [kind for kind in OutputFormats.model_fields if outputs.format_of(kind) == "avro"]


def check_output_schemas(settings: Settings, registry: Registry) -> None:
    """Ask the registry for the schemas of results without registering any. Raises what a start
    would: RegistryUnavailableError, and where they are not to be registered, RegistryError."""
    for kind in in_avro(settings):
        if _registers(settings):
            with suppress(SchemaNotFoundError):
                registry.ids(_subject(settings, kind))
        else:
            registry.lookup(_subject(settings, kind), schema_text(_CONTRACTS[kind]))


def _registers(settings: Settings) -> bool:
    return settings.registry is None or settings.registry.auto_register


def _subject(settings: Settings, kind: str) -> str:
    return f"{getattr(settings.outputs.topics, kind)}-value"


def _result_encoder(settings: Settings, registry: Registry | None) -> ResultEncoder:
    """The encoder of each kind of result, once its schema is registered."""
    kinds = in_avro(settings)

    def schema_id(kind: str, contract: Contract) -> int:
        if kind not in kinds:
            return _NO_SCHEMA
        assert registry is not None
        ask = registry.register if _registers(settings) else registry.lookup
        return ask(_subject(settings, kind), schema_text(contract))

    ids = {contract: schema_id(kind, contract) for kind, contract in _CONTRACTS.items()}
    avro = AvroResults(ids["match"], ids["timeout"], ids["dead-letter"], ids["match-row"])
    if len(kinds) == len(_CONTRACTS):
        return avro
    json = JsonResults()
    return ByContract(
        {contract: avro if kind in kinds else json for kind, contract in _CONTRACTS.items()}
    )


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
