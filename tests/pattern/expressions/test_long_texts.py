"""What a long text may cost, whatever a rule does with it."""

from __future__ import annotations

import time

import pytest

from service.pattern.expressions import bind, parse
from service.pattern.expressions.functions import FAMILIES
from service.pattern.types import record_type
from tests.hostile.stream import LONG_TEXTS
from tests.hostile.texts import CONDITIONS

#: Nothing may take longer than in proportion to the text, with a small factor.
SECONDS_A_CHARACTER = 1e-6
NAMED = record_type(
    {"type": "record", "name": "Named", "fields": [{"name": "name", "type": "string"}]}
)


def test_every_text_function_is_tried() -> None:
    """A new one belongs to the list."""
    texts = {*FAMILIES["Text"], *FAMILIES["Regular expressions"]}
    assert texts <= set(CONDITIONS)


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_long_text_costs_time_in_proportion(name: str) -> None:
    """900,000 characters of every kind. An implementation that goes back would take minutes."""
    function = bind(parse(CONDITIONS[name]), {("name",): 0}, {}, NAMED)
    for text in LONG_TEXTS:
        began = time.process_time()
        function([text], [])
        assert time.process_time() - began < len(text) * SECONDS_A_CHARACTER
