"""Texts in the place of a value of another type, and how that value is written."""

from __future__ import annotations

import re
from collections.abc import Callable

from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.expressions.nodes import Column, Literal, Node
from spark_cep.pattern.expressions.values import type_rules as rules
from spark_cep.pattern.expressions.values.time_texts import date_of, timestamp_of
from spark_cep.pattern.types import BOOLEAN, DATE, TIMESTAMP, SqlType

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")


def written_as(node: Node, kind: SqlType) -> str | None:
    """Return how the text ``node`` is written as a value of type ``kind``: as a constant of it, or
    cast."""
    castable = rules.is_number(kind) or kind in (BOOLEAN, DATE, TIMESTAMP)
    if isinstance(node, Column) and castable:
        return f"the column is text: CAST({name(node.path)} AS {kind})"
    if not isinstance(node, Literal) or not isinstance(node.value, str):
        return None
    if kind in (DATE, TIMESTAMP):
        return f"{kind} '{node.value}'"
    written = constant_of(node, kind)
    return None if written is None else f"without quotes: {written}"


def constant_of(node: Node, kind: SqlType) -> str | None:
    """The text ``node`` as a constant of type ``kind``."""
    if not isinstance(node, Literal) or not isinstance(node.value, str):
        return None
    times: dict[SqlType, Callable[[str], object]] = {DATE: date_of, TIMESTAMP: timestamp_of}
    time = times.get(kind)
    if time is not None:
        return f"{kind} '{node.value}'" if time(node.value) is not None else None
    is_number = rules.is_number(kind) and _NUMBER.fullmatch(node.value.strip())
    is_truth = kind == BOOLEAN and node.value.strip().upper() in ("TRUE", "FALSE")
    return node.value.strip() if is_number or is_truth else None
