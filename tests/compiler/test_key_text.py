"""Keys with several parts as one text."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from spark_cep.compiler.key_text import ESCAPED, escaped, has_null
from tests.reference.key_text import key_text

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


def test_its_form() -> None:
    """As Jackson has it: short escapes where there are some, else capital digits."""
    parts = ["a", "", 'it"s \\', "ключ", "\t\n\x1f\x7f"]
    assert key_text(parts) == r'["a","","it\"s \\","ключ","\t\n\u001F' + '\x7f"]'


@given(st.lists(TEXTS | st.sampled_from([None, "null", ",null]"]), min_size=1, max_size=4))
def test_the_parts_can_be_told(parts: list[str | None]) -> None:
    """Different parts are different keys, and NULL is no text."""
    assert json.loads(key_text(parts)) == parts
    assert has_null(key_text(parts)) == (None in parts)


@given(TEXTS)
def test_what_must_be_escaped(text: str) -> None:
    """A text is changed just where it has one of those characters."""
    assert (escaped(text) != text) == bool(re.search(ESCAPED, text))
