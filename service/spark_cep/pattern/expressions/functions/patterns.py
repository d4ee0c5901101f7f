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
    "RLIKE": Function(
        arguments=(2, 2),
        result=TEXT_TEST,
        prepare=regular.tester,
        constants={1: str},
        doc="`text RLIKE pattern`: whether the regular expression matches somewhere in the text.",
        example=r"'order 17' RLIKE '[0-9]+$'",
        expected=True,
    ),
    "REGEXP_EXTRACT": Function(
        arguments=(2, 3),
        result=takes(STRING, STRING, INT, gives=STRING),
        prepare=regular.extractor,
        constants={1: str, 2: int},
        doc="A group of the first match (by default group 1, the whole match is 0); empty when "
        "there is none.",
        example=r"REGEXP_EXTRACT('id=17;', 'id=([0-9]+)', 1)",
        expected="17",
    ),
    "REGEXP_REPLACE": Function(
        arguments=(3, 3),
        result=TEXTS,
        prepare=regular.replacer,
        constants={1: str, 2: str},
        size=_replaced,
        doc="Each match replaced; `$1` stands for a group.",
        example=r"REGEXP_REPLACE('a17b4', '[0-9]+', '#')",
        expected="a#b#",
    ),
    "REGEXP_COUNT": Function(
        arguments=(2, 2),
        result=takes(STRING, gives=INT),
        prepare=regular.counter,
        constants={1: str},
        doc="How many matches there are.",
        example=r"REGEXP_COUNT('a1b22', '[0-9]')",
        expected=3,
    ),
}
