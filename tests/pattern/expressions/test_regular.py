"""Regular expressions by themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.pattern.expressions import regular

PATTERNS = (
    "a", "[ab]", "(a)(b)?", "^a", "a$", "(?m)^a", "(?i)A+b",
    "é", ".", "\\C", "\\ba", "a|ab", "a*", "(?:)",
)  # fmt: skip


@given(st.sampled_from(PATTERNS), st.text("abA \né\U0001f600", max_size=20))
def test_a_long_text_counts_and_replaces_as_a_short_one(pattern: str, text: str) -> None:
    """Arrow's way gives what the loop over the matches gives."""
    found = []
    for long in (0, len(text.encode()) + 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(regular, "LONG", long)
            replaced = regular.replacer(pattern, "<$0\\$\\\\0>")(text)
            found.append((regular.counter(pattern)(text), replaced))
    assert found[0] == found[1]
