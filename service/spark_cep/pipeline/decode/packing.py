"""Packers of a query: its schemas, and the rules of a batch.

Schemas are those that were known when the query started, and travel with it. Rules travel with each
batch (:mod:`spark_cep.rules.plans`), so they may change while the query runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.codecs.registry.resolved_schemas import ResolvedSchemas
from spark_cep.codecs.registry.schema_lookup import SchemaLookup
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, decoder_for, record_types
from spark_cep.pipeline.decode.pack import Packer, WriterOfId
from spark_cep.pipeline.wire.event_packets import PackedPartitioning
from spark_cep.rules.plans import plan_of


@dataclass(frozen=True)
class Packing:
    """The part that packers of any rules over these schemas share; it can be pickled."""

    schemas: ResolvedSchemas
    lookup: SchemaLookup
    options: DecodeOptions

    @property
    def types(self) -> RecordTypes:
        """The record types that are read."""
        return record_types(self.schemas)

    @property
    def type_names(self) -> tuple[str, ...]:
        """Their names by number."""
        return tuple(t.name for t in self.schemas.types)

    def packer(self, plan: RuleSetPlan) -> Packer:
        """The packer for the rules of ``plan``. Raises what
        :func:`~spark_cep.pipeline.decode.decoder_plan.decoder_for` does."""
        schemas = self.schemas
        return replace(
            packer_of_format(schemas, plan, self.options),
            readers={
                schema_id: WriterOfId(
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
        )

    def packer_of(self, rules: str) -> Packer:
        """The packer for rules as :func:`~spark_cep.rules.plans.encoded` gives them. Raises as
        :meth:`packer`."""
        return self.packer(plan_of(rules))


def packer_of_format(schemas: RecordFormat, plan: RuleSetPlan, options: DecodeOptions) -> Packer:
    """The packer of a format without schema ids. Raises as :meth:`Packing.packer`."""
    decoder = decoder_for(plan, schemas, options)
    return Packer(
        partitionings=tuple(
            PackedPartitioning.of(number, part, micros=decoder.in_micros)
            for number, part in enumerate(plan.partitionings)
        ),
        key_groups=options.key_groups,
        readers={},
        unknown_ids={},
        lookup=None,
        unreadable={},
        time_columns=tuple(t.event_time for t in schemas.types),
        key_texts=tuple(
            tuple(
                part.key_name for part in plan.partitionings if part.key and part.needs_key(t.input)
            )
            for t in schemas.types
        ),
        max_ahead_ms=options.max_ahead_ms,
        decoder=decoder,
    )
