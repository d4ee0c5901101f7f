"""Annotations of results: the texts of their rules, with values of each match filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import reader, texts_of
from spark_cep.matcher.findings.named_values import NamedValues, OfType
from spark_cep.matcher.findings.output_values import text_of, time_texts
from spark_cep.pattern.annotations import template
from spark_cep.pattern.types import STRING

#: Gives the texts of a field, or of a measure, in these rows.
TextsOf = Callable[[str, I64], Sequence[str]]


def annotations_of_match(
    annotations: Mapping[str, str], fields: Mapping[str, Any]
) -> dict[str, str]:
    """Annotations with the values of one match. ``fields``: of the match, by name, times in
    milliseconds, and its ``measures``."""
    found = {}
    for name, text in annotations.items():
        read = template(text)
        found[name] = read.filled([_text(each, fields) for each in read.names])
    return found


def _text(name: str, fields: Mapping[str, Any]) -> str:
    if name in ("start", "time"):
        return time_texts([fields[name]])[0]
    # In a timeout of a rule in SQL there are no measures.
    return text_of(fields[name] if name in fields else fields["measures"].get(name))


def annotations_of_rows(
    annotations: Sequence[Mapping[str, str]], rule: I64, texts: TextsOf
) -> NamedValues | None:
    """Annotations of all rows, column by column; ``None`` where no rule has any. ``rule``: of each
    row, a place in ``annotations``."""
    if not any(annotations):
        return None
    counts = np.array([len(each) for each in annotations], np.int64)[rule]
    ends = np.cumsum(counts)
    names = list(dict.fromkeys(name for each in annotations for name in each))
    name_of, found = np.zeros(ends[-1] if len(ends) else 0, np.int64), [""] * int(counts.sum())
    for number, of_rule in enumerate(annotations):
        rows = np.flatnonzero(rule == number)
        first = (ends - counts)[rows]
        for place, (name, text) in enumerate(of_rule.items()):
            name_of[first + place] = names.index(name)
            read = template(text)
            columns = [texts(each, rows) for each in read.names]
            values = zip(*columns, strict=True) if columns else ((),) * len(rows)
            for at, filled in zip((first + place).tolist(), map(read.filled, values), strict=True):
                found[at] = filled
    return NamedValues(
        ends, names, name_of, [OfType(np.arange(len(found)), texts_of(found), STRING)]
    )


def measured(values: NamedValues, name: str, rows: I64) -> list[str]:
    """The texts of a measure in these rows, in ascending order; of none where a row lacks it."""
    wanted = [number for number, each in enumerate(values.names) if each == name]
    found = [""] * len(rows)
    for places, column, kind in values.typed:
        mine = np.flatnonzero(np.isin(values.name[places], wanted))
        row = np.searchsorted(values.ends, places[mine], side="right")
        at = np.searchsorted(rows, row)
        read = reader(column, kind)
        for number, place, of_row in zip(mine.tolist(), at.tolist(), row.tolist(), strict=True):
            if place < len(rows) and rows[place] == of_row:
                found[place] = text_of(read(number))
    return found
