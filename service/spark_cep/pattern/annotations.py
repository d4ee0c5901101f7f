"""The text of an annotation: literal text, and placeholders that each match fills in.

``{name}`` stands for a field of the match or one of the rule's measures, ``{{`` and ``}}`` for
braces. A text that begins like an address is a link: what is filled in is percent-encoded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from string import Formatter
from typing import Final
from urllib.parse import quote

FIELDS: Final = ("rule_id", "rule_version", "match_id", "key", "start", "time")
"""Fields of a match that a placeholder can name; of a timeout ``time`` is its deadline."""

_LINK: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True)
class Template:
    """A text that was read: ``literals`` stand around the values of ``names``, one more of them."""

    literals: tuple[str, ...]
    names: tuple[str, ...]
    link: bool

    def filled(self, texts: Sequence[str]) -> str:
        """The text of one match, given those of its values."""
        parts = [self.literals[0]]
        for text, literal in zip(texts, self.literals[1:], strict=True):
            parts += (quote(text, safe="") if self.link else text, literal)
        return "".join(parts)


@lru_cache(maxsize=4_096)
def template(text: str) -> Template:
    """Read a text. ValueError, in words for its author, where a brace or placeholder is wrong."""
    try:
        parts = list(Formatter().parse(text))
    except ValueError:
        raise ValueError("a `{` without its `}`, or a `}` without its `{`") from None
    literals, names = [""], []
    for literal, name, form, conversion in parts:
        literals[-1] += literal
        if name is None:
            continue
        if form or conversion:
            raise ValueError(f"the placeholder `{{{name}…}}` has a format behind its name")
        names.append(name)
        literals.append("")
    return Template(tuple(literals), tuple(names), _LINK.match(text) is not None)
