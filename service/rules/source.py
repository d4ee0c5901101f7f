"""Where rules come from, as the job sees it: whole snapshots of entries with rules in them.

What counts is what a source holds now, not what was done to it. A snapshot is one change: all of
it runs from the same batch on. An entry (a file, a record, a row) with a problem is there with its
problem, and hides no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from service.errors import RuleSetError
from service.pattern import document
from service.rules.rule_set import RuleFile

#: In one source.
MOST_ENTRIES = 10_000


class RuleSource(Protocol):
    """What holds rules. Used by one thread at a time."""

    @property
    def name(self) -> str:
        """What messages call it; holds no secrets."""

    def read(self) -> Sequence[RuleFile] | None:
        """All entries that there are now. ``None``: the same as those given last, or something that
        is still being changed. RuleSetError when the source cannot be read or does not answer; the
        next read may succeed."""

    def close(self) -> None:
        """Let go of connections. Nothing is read after it."""


@lru_cache(maxsize=MOST_ENTRIES)
def rule_file(text: str, name: str) -> RuleFile:
    """The rules and problems of a text; what was read before is not read again."""
    try:
        rules, problems = document.examine_rules(text, name)
    except RuleSetError as error:
        return RuleFile(name, (), tuple(error.problems))
    return RuleFile(name, tuple(rules), tuple(problems))
