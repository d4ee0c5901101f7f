"""The schemas that a job's settings read events as, from its registry."""

from __future__ import annotations

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.formats import record_format
from spark_cep.codecs.registry.event_types import EventType
from spark_cep.codecs.registry.registry import Registry
from spark_cep.config import Settings


def reader_schemas(settings: Settings) -> dict[str, list[AvroSchema]]:
    """The reader schemas of each input."""
    topics = [topic for source in settings.inputs.values() for topic in source.topics]
    if any(source.topic_pattern for source in settings.inputs.values()):
        from spark_cep.pipeline.driver.kafka.cluster import Cluster

        topics = Cluster(settings).topics()
    found: dict[str, list[AvroSchema]] = {}
    with Registry.opened(settings.registry) as registry:
        for each in record_format(settings, registry, topics).types:
            assert isinstance(each, EventType)
            found.setdefault(each.input, []).append(each.reader)
    return found
