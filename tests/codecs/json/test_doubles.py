"""Doubles are those that Python reads."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from spark_cep.codecs.json.loops.doubles import nearest_double


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_double(seed: int) -> None:
    """Whatever the digits and the power; few are not told."""
    random = Random(seed)
    told = 0
    for _ in range(20_000):
        number = random.getrandbits(random.randrange(1, 65))
        power = random.randrange(-320, 300) if seed % 2 else random.randrange(-30, 30)
        value, exact = nearest_double(np.uint64(number), power)
        if exact:
            told += 1
            assert value == float(f"{number}e{power}"), (number, power)
    assert told > (17_000 if seed % 2 else 19_900)


def test_half_way_between_two() -> None:
    """The even one is taken."""
    for number, power in [(9007199254740993, 0), (9007199254740995, 0), (2**53 + 1, 3), (5, -1)]:
        value, exact = nearest_double(np.uint64(number), power)
        assert exact
        assert value == float(f"{number}e{power}")
