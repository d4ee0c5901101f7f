"""Sets of true conditions out of columns of words."""

from __future__ import annotations

import numpy as np

from spark_cep.pipeline.wire.event_packets import WORD_BITS
from spark_cep.pipeline.wire.masks import distinct_masks


def test_each_mask_stands_once() -> None:
    """Rows with the same words share one; the lowest word comes first."""
    one, places = distinct_masks(np.array([[5], [0], [5]], np.int64))
    assert ([one[place] for place in places], len(one)) == ([5, 0, 5], 2)
    two, places = distinct_masks(np.array([[1, 2], [1, 0], [1, 2]], np.int64))
    wide = 1 | 2 << WORD_BITS
    assert ([two[place] for place in places], len(two)) == ([wide, 1, wide], 2)
