"""Packers of a query: its format, and the rules of a batch.

What is known of records was known when the query started, and travels with it. Rules travel with
each batch (:mod:`spark_cep.rules.plans`), so they may change while the query runs.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, decoder_for, record_types
from spark_cep.pipeline.decode.pack import Packer
from spark_cep.pipeline.wire.event_packets import PackedPartitioning


@dataclass(frozen=True)
class Packing:
    """The part that packers of any rules over records of this format share; it can be pickled."""

    format: RecordFormat
    options: DecodeOptions

    @property
    def types(self) -> RecordTypes:
        """The record types that are read."""
        return record_types(self.format)

    @property
    def type_names(self) -> tuple[str, ...]:
        """Their names by number."""
        return tuple(one.name for one in self.format.types)

    def packer(self, plan: RuleSetPlan) -> Packer:
        """The packer for the rules of ``plan``. Raises what
        :func:`~spark_cep.pipeline.decode.decoder_plan.decoder_for` does."""
        decoder = decoder_for(plan, self.format, self.options)
        return Packer(
            partitionings=tuple(
                PackedPartitioning.of(number, part, micros=decoder.in_micros)
                for number, part in enumerate(plan.partitionings)
            ),
            time_columns=tuple(one.event_time for one in self.format.types),
            key_texts=tuple(
                tuple(
                    part.key_name
                    for part in plan.partitionings
                    if part.key and part.needs_key(one.input)
                )
                for one in self.format.types
            ),
            max_ahead_ms=self.options.max_ahead_ms,
            decoder=decoder,
        )
