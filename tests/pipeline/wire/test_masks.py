"""Sets of true conditions out of columns of words."""

from __future__ import annotations

from random import Random

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


def test_words_of_all_their_bits() -> None:
    """One number has all bits of many words, the highest ones too, and their order."""
    random = Random(7)
    for count in (2, 3, 31, 32, 33, 64, 65):
        rows = [[random.getrandbits(WORD_BITS) for _ in range(count)] for _ in range(20)]
        masks, places = distinct_masks(np.array(rows, np.int64))
        wide = [sum(each << WORD_BITS * n for n, each in enumerate(row)) for row in rows]
        assert [masks[place] for place in places] == wide


def test_no_rows() -> None:
    """Without rows there is no mask."""
    for count in (1, 4):
        masks, places = distinct_masks(np.zeros((0, count), np.int64))
        assert (masks, len(places)) == ([], 0)
