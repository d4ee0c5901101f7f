"""What a long text may cost, whatever a rule does with it."""

from __future__ import annotations

import time

import pytest

from spark_cep.pattern.expressions import Evaluator, bind, parse
from spark_cep.pattern.expressions.functions.patterns import PATTERNS
from spark_cep.pattern.expressions.functions.text import TEXT
from spark_cep.pattern.types import record_type
from tests.hostile.stream import LONG_TEXTS
from tests.hostile.texts import CONDITIONS

#: For ten times the text ten times as much is due; an implementation that goes back takes a hundred
#: or a thousand times as long.
LONGER, MOST = 10, 40
NAMED = record_type(
    {"type": "record", "name": "Named", "fields": [{"name": "name", "type": "string"}]}
)


def test_every_text_function_is_tried() -> None:
    """A new one belongs to the list."""
    assert {*TEXT, *PATTERNS} <= set(CONDITIONS)


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.slow
def test_a_long_text_costs_time_in_proportion(name: str) -> None:
    """Characters of every kind, up to 900,000 of them."""
    function = bind(parse(CONDITIONS[name]), {("name",): 0}, {}, NAMED)
    for text in LONG_TEXTS:
        short = _seconds(function, text[: len(text) // LONGER])
        assert _seconds(function, text) < MOST * short + 0.05


def _seconds(function: Evaluator, text: str) -> float:
    """Of three times the shortest: nobody else slows a process down to less than it takes."""
    took = []
    for _ in range(3):
        began = time.process_time()
        function([text], [])
        took.append(time.process_time() - began)
    return min(took)
