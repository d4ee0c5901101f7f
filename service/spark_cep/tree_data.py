"""Trees of dataclasses as bytes, and back.

The bytes are MessagePack of plain data: a version and rows, one for each distinct part of the tree,
parts before what holds them. A row is the name of a class and its fields; ``[n]`` in it stands for
what row *n* says. Names are looked up in a closed list of classes, so reading can make their
instances and run nothing else.

Fields that take no part in equality and have a default, places in a text above all, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from spark_cep.errors import StateError
from spark_cep.packing import DAMAGE, pack, unpack

_VERSION: Final = 1
_TUPLE, _SET, _MAPPING, _SPAN = "tuple", "frozenset", "mapping", "timedelta"
_PLAIN: Final = frozenset({type(None), bool, int, float, str, Decimal, date, datetime})
_MICROSECOND: Final = timedelta(microseconds=1)
_Row = list[Any]


class TreeFormat:
    """Writes and reads trees of instances of ``classes``, dataclasses and enums by name, beside
    tuples, frozen sets, mappings and values that expressions compute with."""

    def __init__(self, classes: Mapping[str, type]) -> None:
        self.classes = classes
        self._written: dict[type, tuple[str, tuple[str, ...]]] = {}
        self._made: dict[str, Callable[[Sequence[Any]], Any]] = {
            _TUPLE: tuple,
            _SET: frozenset,
            _MAPPING: lambda values: dict(zip(values[::2], values[1::2], strict=True)),
            _SPAN: lambda values: values[0] * _MICROSECOND,
        }
        for name, kind in classes.items():
            self._written[kind] = name, _written(kind)
            self._made[name] = _maker(kind)

    def bytes_of(self, tree: object) -> bytes:
        """The tree as bytes. TypeError for a part that is of no known class."""
        rows: list[_Row] = []
        places: dict[bytes, int] = {}
        known: dict[int, _Row] = {}

        def put(value: Any) -> Any:
            if type(value) in _PLAIN:
                return value
            reference = known.get(id(value))
            if reference is None:
                row = self._row(value, put)
                # By their bytes: equal values may differ, as 0.0 and -0.0.
                place = places.setdefault(pack(row), len(rows))
                if place == len(rows):
                    rows.append(row)
                reference = known[id(value)] = [place]
            return reference

        put(tree)
        return pack([_VERSION, rows])

    def tree_of(self, data: bytes) -> Any:
        """The tree that :meth:`bytes_of` was given. StateError for bytes of another format."""
        made: list[Any] = []
        maker_of = self._made
        try:
            version, rows = unpack(data)
            if version != _VERSION:
                raise StateError(f"a tree is in format {version!r}; this version reads {_VERSION}")
            for name, *values in rows:
                maker = maker_of.get(name)
                if maker is None:
                    raise StateError(f"a tree has a part of the unknown kind {name!r}")
                made.append(maker([made[v[0]] if type(v) is list else v for v in values]))
            return made[-1]
        except DAMAGE as error:
            raise StateError(f"a tree is damaged: {error!r}") from error

    def _row(self, value: Any, put: Callable[[Any], Any]) -> _Row:
        kind = type(value)
        written = self._written.get(kind)
        if written is not None:
            name, names = written
            return [name, *(put(getattr(value, each)) for each in names)]
        if kind is tuple:
            return [_TUPLE, *map(put, value)]
        if kind is frozenset:
            return [_SET, *map(put, sorted(value))]
        if isinstance(value, Mapping):
            return [_MAPPING, *(put(each) for item in value.items() for each in item)]
        if kind is timedelta:
            return [_SPAN, value // _MICROSECOND]
        raise TypeError(f"a value of type {kind.__name__} has no place in a tree")


def _written(kind: type) -> tuple[str, ...]:
    if issubclass(kind, Enum):
        return ("value",)
    if not is_dataclass(kind):
        raise TypeError(f"{kind.__name__} is no dataclass and no enum")
    given = [each.name for each in fields(kind) if not _left_out(each)]
    if given != [each.name for each in fields(kind)][: len(given)]:
        raise TypeError(f"{kind.__name__}: a field that is left out stands before one that is not")
    return tuple(given)


def _left_out(field: Field[Any]) -> bool:
    has_default = field.default is not MISSING or field.default_factory is not MISSING
    return not field.compare and has_default


def _maker(kind: type) -> Callable[[Sequence[Any]], Any]:
    return lambda values: kind(*values)
