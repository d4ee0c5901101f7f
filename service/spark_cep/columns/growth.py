"""Arrays that grow as compiled loops need it."""

from __future__ import annotations

from typing import Any

import numpy as np


def grown(table: Any, need: int) -> Any:
    """The array with room for at least ``need`` rows, twice that where it grows."""
    if len(table) >= need:
        return table
    larger = np.zeros((2 * need, *table.shape[1:]), table.dtype)
    larger[: len(table)] = table
    return larger
