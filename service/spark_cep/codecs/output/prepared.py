"""Compiled loops of results, made ready before the first batch needs them."""

from __future__ import annotations

import numpy as np

from spark_cep.codecs.output.avro_results import AvroResults
from spark_cep.codecs.output.result_columns import columns_of, row_ids
from spark_cep.columns.vectors import Bytes, Numbers, no_texts
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.findings.aggregates import aggregate_column
from spark_cep.matcher.findings.chains import Chains
from spark_cep.matcher.findings.named_values import nothing_named
from spark_cep.matcher.findings.results import ResultKind, Results
from spark_cep.pattern.types import BIGINT


def prepare() -> None:
    """Encode no results."""
    i64, i32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
    nothing = Results(
        ResultKind.MATCH, (), no_texts(), Names(), i32, i64, i64, np.zeros(0, np.uint8), i64, i64,
        i32, EventTable.empty(), nothing_named(),
    )  # fmt: skip
    chains = Chains(i64, i32, i32)
    chains.listed()
    for values in (Numbers(i64, np.zeros(0, bool)), Bytes.of([None])):
        aggregate_column("MAX", values, BIGINT, chains.some(np.zeros(0, bool)))
    columns = columns_of(nothing)
    columns.encoded(AvroResults(0, 0, 0, 0).values("match", columns, 0))
    row_ids(columns, columns.ids, columns.row, columns.row)
