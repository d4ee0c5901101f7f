"""What the bits and columns of stored events mean."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Meaning:
    """Names of conditions, by bit, and of columns with their types."""

    conditions: tuple[str, ...]
    columns: tuple[str, ...]

    @cached_property
    def fingerprint(self) -> bytes:
        """Identity of the meaning."""
        names = "\n".join([*self.conditions, "--", *self.columns])
        return hashlib.sha256(names.encode()).digest()[:8]
