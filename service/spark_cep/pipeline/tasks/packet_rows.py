"""Packets for key groups as rows of Spark's."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from spark_cep.pipeline.state.key_group_labels import label
from spark_cep.pipeline.wire.fragments import fragments
from spark_cep.pipeline.wire.packet_schemas import PACKET_SCHEMA


def packet_rows(packets: Sequence[tuple[int, int, bytes]]) -> pa.RecordBatch:
    """Rows of packets, at least one: each a key group, a kind, and bytes."""
    rows = [(label(group), *row) for group, kind, each in packets for row in fragments(kind, each)]
    labels, kinds, blobs = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(labels, pa.int64()),
            pa.array(kinds, pa.int32()),
            pa.array(blobs, pa.binary()),
        ],
        schema=PACKET_SCHEMA,
    )
