"""Sets of true conditions: words, a column of an event each, and one number."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from spark_cep.pipeline.wire.event_packets import WORD_BITS
from spark_cep.pipeline.wire.masks import condition_sets, distinct_masks


def _masks_of(sets: pa.Array) -> list[int]:
    masks, places = distinct_masks(sets)
    return [masks[place] for place in places]


def _wide(words: NDArray[np.int64]) -> list[int]:
    return [sum(each << WORD_BITS * n for n, each in enumerate(row)) for row in words.tolist()]


def test_each_mask_stands_once() -> None:
    """Events with the same words share one; the lowest word comes first."""
    for words in ([[5], [0], [5]], [[1, 2], [1, 0], [1, 2]]):
        masks, places = distinct_masks(condition_sets(np.array(words, np.int64)))
        assert len(masks) == 2
        assert [masks[place] for place in places] == _wide(np.array(words))


@pytest.mark.parametrize("count", [1, 2, 3, 31, 32, 33, 64, 65, 300])
def test_words_of_all_their_bits(count: int) -> None:
    """One number has all bits of the words, the highest ones too, in their order; also of a slice,
    and of several columns put together."""
    random = Random(7)
    words = np.array(
        [[random.getrandbits(WORD_BITS) for _ in range(count)] for _ in range(20)], np.int64
    )
    words[np.array([random.random() < 0.6 for _ in range(words.size)]).reshape(words.shape)] = 0
    sets = condition_sets(words)
    sets.validate(full=True)
    assert _masks_of(sets) == _wide(words)
    assert _masks_of(sets.slice(3, 9)) == _wide(words[3:12])
    assert _masks_of(pa.concat_arrays([sets.slice(15), sets.slice(0, 4)])) == _wide(
        np.concatenate([words[15:], words[:4]])
    )


def test_what_is_not_true_takes_no_bytes() -> None:
    """An event is as wide as its words that have bits, however many conditions there are."""
    words = np.zeros((3, 300), np.int64)
    words[0, 299], words[2, 0], words[2, 1] = 1, 1, 1
    widths = condition_sets(words).to_pylist()
    assert [len(each) for each in widths] == [10, 0, 20]


@pytest.mark.parametrize("count", [1, 4])
def test_no_rows(count: int) -> None:
    """Without rows there is no mask."""
    masks, places = distinct_masks(condition_sets(np.zeros((0, count), np.int64)))
    assert (masks, len(places)) == ([], 0)
