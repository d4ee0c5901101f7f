"""The colours of charts, which the stylesheet does not reach."""

from __future__ import annotations

from typing import Final

MATCH: Final = "#2e9e6b"
TIMEOUT: Final = "#d98a1f"
OPEN: Final = "#4d8fd6"
EVENT: Final = "#8496a6"
NOW: Final = "#d0416a"
#: By whether the page is dark.
TEXT: Final = {False: "#475766", True: "#aab7c2"}
GRID: Final = {False: "#e4e9ee", True: "#2b3742"}
