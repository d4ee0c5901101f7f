"""What the bits and columns of stored events mean, and which rules there were at the time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Meaning:
    """Names of conditions, by bit, and of columns with their types. ``rules``: what names the rules
    in the state. Behind the conditions is a bit for each rule: it was not there when the event was
    read (:meth:`service.compiler.rule_set.Partitioning.unseen`)."""

    conditions: tuple[str, ...]
    columns: tuple[str, ...]
    rules: tuple[int, ...] = ()

    @cached_property
    def fingerprint(self) -> bytes:
        """Identity of the meaning."""
        names = "\n".join([*self.conditions, "--", *self.columns, "--", *map(str, self.rules)])
        return hashlib.sha256(names.encode()).digest()[:8]
