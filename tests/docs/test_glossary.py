"""The glossary can be looked up in."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text("utf-8")
TERMS = re.findall(r"^### (.+)$", PAGE, re.MULTILINE)


def test_terms_are_in_alphabetical_order() -> None:
    """Upper and lower case count alike, and no term is there twice."""
    folded = [term.casefold() for term in TERMS]
    assert folded == sorted(set(folded))


def test_each_term_leads_to_more() -> None:
    """After its explanation stands a link to the page that says all; test_links follows it."""
    meanings = re.split(r"^### .+\n", PAGE, flags=re.MULTILINE)[1:]
    assert len(meanings) == len(TERMS) >= 50
    assert [t for t, m in zip(TERMS, meanings, strict=True) if "[More](" not in m] == []
