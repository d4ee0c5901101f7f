"""The job's own way from Kafka's records to what is found, without Spark: decoder, packets and key
group as the tasks have them, in one batch and one key group."""

from __future__ import annotations

from collections.abc import Sequence

from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.keys import KeysMatcher
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions, decoder_for, record_types
from spark_cep.pipeline.decode.pack import Packer, RecordReader
from spark_cep.pipeline.decode.resolved_schemas import ResolvedSchemas
from spark_cep.pipeline.match.batch_input import BatchInput
from spark_cep.pipeline.match.key_group import KeyGroup, MatchOptions
from spark_cep.pipeline.wire.event_packets import PackedPartitioning
from spark_cep.pipeline.wire.task_properties import TaskProperties

from tests.pipeline.decode.lookups import lookup
from tests.pipeline.decode.reference import Kafka, kafka_records

_BUCKET_SIZE = 65_536


def found(
    plan: RuleSetPlan, schemas: ResolvedSchemas, records: Sequence[Kafka], watermark: int
) -> Outputs:
    """What rules find in records, all of them decided when the watermark comes to ``watermark``.
    Of the decoder's dead letters those of conditions and keys are there, not those of records."""
    packer = Packer(
        partitionings=tuple(PackedPartitioning.of(*each) for each in enumerate(plan.partitionings)),
        key_groups=1,
        readers={
            schema_id: RecordReader(
                writers[0].schema.text,
                {w.type: schemas.types[w.type].reader.text for w in writers if w.type is not None},
            )
            for schema_id, writers in schemas.writers.items()
        },
        unknown_ids=dict(schemas.unknown_ids),
        lookup=lookup(),
        unreadable=schemas.unreadable,
        time_columns=tuple(t.event_time for t in schemas.types),
        key_texts=tuple(
            tuple(part.key_name for part in plan.partitionings if part.needs_key(t.input))
            for t in schemas.types
        ),
        max_ahead_ms=None,
        decoder=decoder_for(plan, schemas, DecodeOptions(1, None, keep_all=False)),
    )
    packed = list(packer.pack(kafka_records(records), TaskProperties(0, None)))
    batch = BatchInput()
    for packets, _ in packed:
        for _, kind, packet in packets:
            batch.take(kind, packet)
    types = record_types(schemas)
    names = tuple(t.name for t in schemas.types)
    options = MatchOptions(1, _BUCKET_SIZE, "maximum", 0, True, names, types)
    group = KeyGroup(0, plan, options, [KeysMatcher(part, types) for part in plan.partitionings])
    group.clock.read([("t", 0, watermark + 1)])
    entries: dict[str, bytes | None] = {}
    outputs = Outputs(
        dead_letters=[each for made in packed for each in made.letters if each.rule_id is not None]
    )
    for each in group.run(
        batch.events,
        batch.unkeyed,
        lambda names: [entries.get(name) for name in names],
        entries.__setitem__,
    ):
        outputs.add(each)
    return outputs
