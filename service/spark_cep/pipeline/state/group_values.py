"""The value of a key group, checked before anything uses it: a checksum says that it is what was
written, not that it can be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from spark_cep.columns.compilation import FOREVER, NEVER
from spark_cep.errors import damaged_state
from spark_cep.matcher.batch.meaning import Meaning

_MAYBE_NUMBER: Final = frozenset({int})
#: The shapes of plain values: a type, a list of one shape, a tuple of several, a mapping; in a set
#: is what may also be none.
_SHAPES: Final[Mapping[str, Any]] = {
    "key_groups": int,
    "clock": (int, [(str, int, _MAYBE_NUMBER)], int),
    "topics": [str],
    "types": [frozenset({str})],
    "drains": {str: (int, int, bool, _MAYBE_NUMBER, _MAYBE_NUMBER)},
    "carried": [
        (int, int, int, int, [int], [int], int, [_MAYBE_NUMBER], bool, _MAYBE_NUMBER),
    ],
    "rules": {str: (str, int, int, int, int)},
    "next_rule": int,
    "meanings": {bytes: ([str], [str], [int], [int])},
    "buckets": {str: int},
    "fingerprints": {str: bytes},
    "stale": {str: bytes},
    "waiting": {str: int},
}
#: A terabyte of buckets of the usual size, and more than LZ4 takes.
_MOST_BUCKETS, _MOST_BYTES = 1 << 24, 1 << 31


def check_values(stored: Mapping[str, Any]) -> None:
    """Refuse the value of a key group that says what none can say: StateError."""
    for name, shape in _SHAPES.items():
        if not _has(stored.get(name), shape):
            raise damaged_state(f"the value of a key group has another `{name}`")
    _check_entries(stored["entries"] if isinstance(stored.get("entries"), dict) else {0: ()})
    if not all(0 < number <= _MOST_BUCKETS for number in stored["buckets"].values()):
        raise damaged_state("the number of buckets of a key group is none")
    numbers = [number for _, _, number, _, _ in stored["rules"].values()]
    least, most = min(numbers, default=0), max(numbers, default=-1)
    if len({*numbers}) < len(numbers) or least < 0 or most >= stored["next_rule"]:
        raise damaged_state("rules of a key group have no numbers of their own")
    for fingerprint, meant in stored["meanings"].items():
        if Meaning(*map(tuple, meant)).fingerprint != fingerprint:
            raise damaged_state("the layout of stored events is not what its fingerprint says")
    for _, to, _, _, states, _, _, gaps, _, _ in stored["carried"]:
        if max(states, default=0) >= len(gaps) or to >= stored["next_rule"]:
            raise damaged_state("partial matches are to move to states that there are not")


def _check_entries(entries: Mapping[Any, Any]) -> None:
    """Check time, size and checksum of each entry; all at once, for there are thousands."""
    try:
        numbers = np.array(list(entries.values()) or np.zeros((0, 3), np.int64))
    except (ValueError, OverflowError):
        numbers = np.zeros(0)
    right = (
        numbers.dtype == np.int64
        and numbers.shape[1:] == (3,)
        and not ((numbers[:, 1] < 0) | (numbers[:, 1] >= _MOST_BYTES)).any()
        and all(type(name) is str for name in entries)
    )
    if not right:
        raise damaged_state("the entries of a key group have other times, sizes or checksums")


def _has(value: Any, shape: Any) -> bool:
    if shape is int:
        return type(value) is int and NEVER <= value <= FOREVER
    if isinstance(shape, frozenset):
        (of,) = shape
        return value is None or _has(value, of)
    if isinstance(shape, list):
        return type(value) is list and all(_has(each, shape[0]) for each in value)
    if isinstance(shape, tuple):
        return type(value) is list and len(value) == len(shape) and all(map(_has, value, shape))
    if isinstance(shape, dict):
        ((of_key, of_value),) = shape.items()
        return type(value) is dict and all(
            _has(key, of_key) and _has(each, of_value) for key, each in value.items()
        )
    return type(value) is shape
