"""Records on their way to Kafka, as columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from spark_cep.codecs.output.outputs import MATCH_ID_HEADER
from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes
from spark_cep.pipeline.wire.packets import Header, Record, ResultColumns


class Messages(NamedTuple):
    """Columns by number: record *r* goes to ``topics[topic[r]]``, its key is ``keys[key[r]]`` and
    its value ``values[value[r]]``; -1: none.

    It has the headers ``group_ends[g]`` to before ``group_ends[g + 1]`` where *g* is ``group[r]``;
    header *h* has the name ``names[name[h]]``, which ends with a zero byte, and the value
    ``texts[text[h]]`` (-1: none). Behind them comes one of its own, ``own[r]``, named
    ``names[own_name]``; none does where ``own_name`` is -1, or ``own[r]`` empty.
    """

    topics: Sequence[str]
    topic: I64
    key: I64
    keys: Bytes
    value: I64
    values: Bytes
    group: I64
    group_ends: I64
    name: I64
    names: Bytes
    text: I64
    texts: Bytes
    own_name: int
    own: Bytes

    @classmethod
    def of_results(cls, results: ResultColumns) -> Messages:
        """Results."""
        rows = len(results.rule)
        return cls._of(
            [results.topic],
            np.zeros(rows, np.int64),
            (results.keys, results.key),
            (results.values, np.arange(rows)),
            results.rule,
            results.headers,
            (MATCH_ID_HEADER, results.ids),
        )

    @classmethod
    def of_records(cls, records: Sequence[Record]) -> Messages:
        """Any records."""
        topics: dict[str, int] = {}
        topic = [topics.setdefault(record[0], len(topics)) for record in records]
        return cls._of(
            list(topics),
            np.array(topic, np.int64),
            Bytes.numbered(record[1] for record in records),
            Bytes.numbered(record[2] for record in records),
            np.arange(len(records)),
            [record[3] for record in records],
            None,
        )

    @classmethod
    def _of(
        cls,
        topics: Sequence[str],
        topic: I64,
        keys: tuple[Bytes, I64],
        values: tuple[Bytes, I64],
        group: I64,
        groups: Iterable[Sequence[Header]],
        own: tuple[str, Bytes] | None,
    ) -> Messages:
        group_ends, numbers, texts = [0], [], []
        names: dict[str, int] = {}
        for headers in groups:
            for header, content in headers:
                numbers.append(names.setdefault(header, len(names)))
                texts.append(content)
            group_ends.append(len(texts))
        own_name, own_values = -1, Bytes.of([])
        if own is not None:
            own_name = names.setdefault(own[0], len(names))
            own_values = own[1]
        column, text = Bytes.numbered(texts)
        return cls(
            topics,
            topic,
            keys[1],
            keys[0],
            values[1],
            values[0],
            group,
            np.array(group_ends, np.int64),
            np.array(numbers, np.int64),
            Bytes.of([name.encode() + b"\0" for name in names]),
            text,
            column,
            own_name,
            own_values,
        )

    @property
    def most_headers(self) -> int:
        """Return the largest number of headers of one record."""
        return int(np.diff(self.group_ends).max(initial=0)) + (self.own_name >= 0)
