"""The events that matches and timeouts have taken, as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_cep.columns.compilation import I32, I64


class Chains(NamedTuple):
    """Events taken, by chain: those of chain ``i`` are rows ``ends[i - 1]`` to ``ends[i]``."""

    ends: I64
    steps: I32
    events: I32

    def chain(self, number: int) -> Iterator[tuple[int, int]]:
        """Step number and event number of each event of one chain, first to last."""
        start = int(self.ends[number - 1]) if number else 0
        end = int(self.ends[number])
        return zip(self.steps[start:end].tolist(), self.events[start:end].tolist(), strict=True)

    def of(self, wanted: NDArray[np.bool_]) -> Chains:
        """The chains that are ``wanted``."""
        if wanted.all():
            return self
        lengths = np.diff(self.ends, prepend=0)
        taken = np.repeat(wanted, lengths)
        return Chains(np.cumsum(lengths[wanted]), self.steps[taken], self.events[taken])
