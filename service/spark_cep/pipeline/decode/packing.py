"""What packing is made of: the schemas of a query, and the rules of a batch.

Schemas are those that were known when the query started, and travel with it. Rules travel with each
batch (:mod:`spark_cep.rules.plans`), so they may change while the query runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from spark_cep.codecs.output.outputs import OutputEncoder
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.codecs.registry.schema_lookup import SchemaLookup
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, decoder_for
from spark_cep.pipeline.decode.pack import Packer, RecordReader
from spark_cep.pipeline.read.records import KafkaRecords
from spark_cep.pipeline.spark.private_api import pickled, unpickled
from spark_cep.pipeline.wire.event_packets import PackedPartitioning
from spark_cep.pipeline.wire.task_properties import TaskProperties
from spark_cep.rules.plans import plan_of

_MOST_PACKERS = 4


@dataclass(frozen=True)
class Packing:
    """What packers of any rules over these schemas have in common; picklable."""

    schemas: ResolvedSchemas
    lookup: SchemaLookup
    encoder: OutputEncoder
    options: DecodeOptions

    def packer(self, plan: RuleSetPlan) -> Packer:
        """The packer for the rules of ``plan``. Raises what
        :func:`~spark_cep.pipeline.decode.decoder_plan.decoder_for` does."""
        schemas, options = self.schemas, self.options
        decoder = decoder_for(plan, schemas, options)
        return Packer(
            partitionings=tuple(
                PackedPartitioning.of(number, part, micros=decoder.in_micros)
                for number, part in enumerate(plan.partitionings)
            ),
            key_groups=options.key_groups,
            readers={
                schema_id: RecordReader(
                    writers[0].schema.text,
                    {
                        w.type: schemas.types[w.type].reader.text
                        for w in writers
                        if w.type is not None
                    },
                )
                for schema_id, writers in schemas.writers.items()
            },
            unknown_ids=dict(schemas.unknown_ids),
            lookup=self.lookup,
            unreadable=dict(schemas.unreadable),
            encoder=self.encoder,
            time_columns=tuple(t.event_time for t in schemas.types),
            key_texts=tuple(
                tuple(
                    part.key_name
                    for part in plan.partitionings
                    if part.key and part.needs_key(t.input)
                )
                for t in schemas.types
            ),
            max_ahead_ms=options.max_ahead_ms,
            decoder=decoder,
        )

    def packer_of(self, rules: str) -> Packer:
        """The packer for rules as :func:`~spark_cep.rules.plans.encoded` gives them. Raises as
        :meth:`packer`."""
        return self.packer(plan_of(rules))


class PackBatch:
    """Packs with the rules that the task's batch has."""

    def __init__(self, packing: Packing) -> None:
        self._packing: bytes = pickled(packing)

    def __call__(self, records: Iterator[KafkaRecords]) -> Iterator[pa.RecordBatch]:
        """One task: its records in, packets out."""
        return _packer(self._packing, TaskProperties.of_task().rules)(records)


@lru_cache(maxsize=_MOST_PACKERS)
def _packer(packing: bytes, rules: str) -> Packer:
    """A process has one task at a time, and a packer begins each of them afresh."""
    packer: Packer = unpickled(packing).packer_of(rules)
    return packer
