"""Readings of input topics, one after the other, whatever a broker gives in time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from spark_cep.watch.newest_records import NewestRecords

AT = ("t", 0)


class Broker:
    """A partition that ends at ``end``, and its consumer, which is ``slow`` or not."""

    def __init__(self) -> None:
        self.end = 0
        self.slow = False
        self._from: int | None = None

    def input_partitions(self, *_: Any) -> list[tuple[str, int]]:
        """The partition."""
        return [AT]

    def offsets(self, *_: Any, **__: Any) -> dict[tuple[str, int], int]:
        """Its end."""
        return {AT: self.end}

    def ask(self, request: Any) -> Any:
        """The answer."""
        return request()

    def assign(self, wanted: list[Any]) -> None:
        """Read from there."""
        self._from = wanted[0].offset if wanted else None

    def consume(self, *_: Any) -> list[Any]:
        """All records up to the end, or none in time."""
        if self.slow or self._from is None:
            return []
        start, self._from = self._from, None
        return [record(offset) for offset in range(start, self.end)]


def record(offset: int) -> Any:
    """A message without a value, whose key is its offset."""
    fields = {"topic": AT[0], "partition": AT[1], "offset": offset, "error": None, "value": None}
    fields |= {"key": str(offset), "timestamp": (0, offset)}
    return SimpleNamespace(**{name: lambda value=value: value for name, value in fields.items()})


def texts(newest: NewestRecords) -> list[str]:
    """The keys of the records of a reading, and what it says of others."""
    return [line.text.split()[1] for line in newest.read()]


def test_each_record_is_shown_once() -> None:
    """Also where a broker was slow, a partition was empty at first, or was made again."""
    broker: Any = Broker()
    decoder: Any = None
    newest = NewestRecords(broker, broker, decoder, ["t"])
    assert texts(newest) == []
    broker.end = 12
    assert texts(newest) == ["2", *map(str, range(2, 12))]
    broker.end, broker.slow = 14, True
    assert texts(newest) == []
    broker.slow = False
    assert texts(newest) == ["12", "13"]
    assert texts(newest) == []
    broker.end = 3
    assert texts(newest) == []
    broker.end = 5
    assert texts(newest) == ["3", "4"]
