"""Names that steps, measures, columns of a result and annotations can have."""

from __future__ import annotations

import re
from typing import Final

LONGEST_NAME: Final = 100
"""Most characters in the name of a step, a measure or a rule."""

ALLOWED_NAME: Final = f"letters, digits and `_`, not beginning with a digit, at most {LONGEST_NAME}"

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def can_name(name: str) -> bool:
    """Tell whether this can be a name."""
    return _NAME.fullmatch(name) is not None and len(name) <= LONGEST_NAME
