"""Functions of regular expressions; see ``regular`` for what they are and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_cep.pattern.expressions.functions.row import TEXT_TEST, TEXTS, Function, takes
from spark_cep.pattern.expressions.values import regular
from spark_cep.pattern.types import INT, STRING


def _replaced(sizes: Sequence[int], constants: Sequence[Any]) -> int:
    """Each character may be a match, and so may what is between them."""
    return sizes[0] * (1 + len(constants[2]))


PATTERNS: dict[str, Function] = {
    "RLIKE": Function((2, 2), TEXT_TEST, prepare=regular.tester, constants={1: str}),
    "REGEXP_EXTRACT": Function(
        (2, 3),
        takes(STRING, STRING, INT, gives=STRING),
        prepare=regular.extractor,
        constants={1: str, 2: int},
    ),
    "REGEXP_REPLACE": Function(
        (3, 3), TEXTS, prepare=regular.replacer, constants={1: str, 2: str}, size=_replaced
    ),
    "REGEXP_COUNT": Function(
        (2, 2), takes(STRING, gives=INT), prepare=regular.counter, constants={1: str}
    ),
}
