"""Results that one side of a comparison has found, and the other one has not, or not yet.

They are in a database of SQLite without a name, which is in memory as far as its cache has room,
and then on disk, and is gone when it is closed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from spark_cep.event_times import time_text
from spark_cep.model import Coordinates
from spark_cep.packing import pack, unpack

OLD, NEW = 0, 1
_CACHE_KIB = 64 << 10
_TABLE = "CREATE TABLE result (id TEXT, side INTEGER, rule TEXT, time INTEGER, packed BLOB)"
_PAIRS = """
SELECT old.packed, new.packed FROM result old JOIN result new ON old.id = new.id
WHERE old.side = 0 AND new.side = 1
"""
_ALONE = """
CREATE TABLE alone AS SELECT rule, side, time, packed FROM result one WHERE NOT EXISTS
(SELECT 1 FROM result other WHERE other.id = one.id AND other.side <> one.side)
"""


class Compared(NamedTuple):
    """A result of one side. ``time``: that of a match, the deadline of a timeout; ``events``: by
    step the events that it took."""

    kind: str
    rule: str
    key: str | None
    start: int
    time: int
    events: tuple[tuple[str, tuple[Coordinates, ...]], ...]
    measures: Mapping[str, Any]

    @property
    def counts(self) -> dict[str, int]:
        """The number of events of each step."""
        return {name: len(taken) for name, taken in self.events}

    def as_json(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            "kind": self.kind,
            "key": self.key,
            "start": time_text(self.start),
            "time": time_text(self.time),
            "events": self.counts,
            "measures": {name: plain(value) for name, value in self.measures.items()},
        }

    def packed(self) -> bytes:
        """The bytes that :meth:`unpacked` reads."""
        return pack([*self])

    @classmethod
    def unpacked(cls, packed: bytes) -> Compared:
        """The result of its bytes."""
        kind, rule, key, start, time, events, measures = unpack(packed)
        taken = tuple((name, tuple(Coordinates(*at) for at in each)) for name, each in events)
        return cls(kind, rule, key, start, time, taken, measures)


def plain(value: Any) -> Any:
    """A value of a measure as JSON has it."""
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class Unpaired:
    """The results that wait for the other side."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("")
        for statement in (
            f"PRAGMA cache_size = -{_CACHE_KIB}",
            "PRAGMA journal_mode = OFF",
            _TABLE,
        ):
            self._database.execute(statement)

    def add(self, side: int, several: Iterable[tuple[str, Compared]]) -> None:
        """Take in results, with what is the same for one that both sides find."""
        rows = ((id_, side, each.rule, each.time, each.packed()) for id_, each in several)
        self._database.executemany("INSERT INTO result VALUES (?, ?, ?, ?, ?)", rows)

    def end(self) -> None:
        """Find those that are alone; nothing comes any more."""
        self._database.execute("CREATE INDEX by_id ON result (id, side)")
        self._database.execute(_ALONE)
        self._database.execute("CREATE INDEX by_rule ON alone (rule, side, time)")

    def pairs(self) -> Iterator[tuple[Compared, Compared]]:
        """Those that both sides have found, old and new."""
        for old, new in self._database.execute(_PAIRS):
            yield Compared.unpacked(old), Compared.unpacked(new)

    def count(self, rule: str, side: int) -> int:
        """The number of those that one side alone has found."""
        statement = "SELECT COUNT(*) FROM alone WHERE rule = ? AND side = ?"
        ((count,),) = self._database.execute(statement, (rule, side))
        return int(count)

    def first(self, rule: str, side: int, most: int) -> list[Compared]:
        """The first ones by time that one side alone has found."""
        statement = "SELECT packed FROM alone WHERE rule = ? AND side = ? ORDER BY time LIMIT ?"
        rows = self._database.execute(statement, (rule, side, most))
        return [Compared.unpacked(packed) for (packed,) in rows]

    def close(self) -> None:
        """Remove them."""
        self._database.close()
