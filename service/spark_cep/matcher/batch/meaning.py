"""The layout of stored events: the conditions of their bits, their columns, and the rules that
there were at the time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Meaning:
    """Names of conditions, by bit, and of columns with their types. ``rules``: what names the rules
    in the state; ``draining``: those of them that drain. Behind the conditions is a bit for each
    rule: it was not there when the event was read
    (:meth:`spark_cep.compiler.rule_set.Partitioning.unseen`); and behind these one for each that
    drains (:meth:`spark_cep.compiler.rule_set.Partitioning.early`)."""

    conditions: tuple[str, ...]
    columns: tuple[str, ...]
    rules: tuple[int, ...] = ()
    draining: tuple[int, ...] = ()

    @cached_property
    def fingerprint(self) -> bytes:
        """Identity of the meaning."""
        names = [*self.conditions, "--", *self.columns, "--", *map(str, self.rules)]
        if self.draining:
            names += ["--", *map(str, self.draining)]
        return hashlib.sha256("\n".join(names).encode()).digest()[:8]
