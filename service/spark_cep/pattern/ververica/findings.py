"""Problems of a pattern by their paths in its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from spark_cep.documents.places import Path
from spark_cep.errors import MOST_PROBLEMS


@dataclass(frozen=True, slots=True)
class GraphFinding:
    """One thing that is wrong at ``path``; ``offsets`` are characters inside its text."""

    path: Path
    message: str
    allowed: str | None = None
    offsets: tuple[int, int] | None = None
    at: Literal["key", "value"] = "value"


class GraphFindings(list[GraphFinding]):
    """All that is wrong with one pattern; no more than are told."""

    def add(
        self,
        path: Path,
        message: str,
        allowed: str | None = None,
        offsets: tuple[int, int] | None = None,
        at: Literal["key", "value"] = "value",
    ) -> None:
        """Note one thing."""
        if len(self) < MOST_PROBLEMS:
            self.append(GraphFinding(path, message, allowed, offsets, at))
