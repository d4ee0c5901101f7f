"""The two engines as the matcher of many keys sees them: rules of steps
(:mod:`spark_cep.matcher.steps`) and row patterns (:mod:`spark_cep.matcher.row_pattern`).

An *instance* is one rule for one key. An engine holds no state: it is given what it remembers, as
arrays, and gives it back as it is then.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np

from spark_cep.columns.compilation import I64, Table
from spark_cep.columns.vectors import Bytes, Flags
from spark_cep.matcher.batch.events import EventTable, Names
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.findings.outputs import Outputs

#: Outputs are handed out when their matches and timeouts hold so many events.
MOST_TAKEN_EVENTS = 50_000


@dataclass(frozen=True)
class NewEvents:
    """Events of a run: ``events`` are those that are held from before, and behind them the new
    ones, in order of application within each key. ``key``, ``mask`` and ``micros`` are of the new
    ones: places in ``keys`` and ``masks`` (sets of true conditions), microseconds behind the
    millisecond."""

    events: EventTable
    keys: Bytes
    masks: Sequence[int]
    key: I64
    mask: I64
    micros: I64

    @property
    def held(self) -> int:
        """The number of events that are held from before."""
        return len(self.events) - len(self.key)


class Remembered(Protocol):
    """The state of many keys that an engine remembers. ``instances`` have the numbers ``key`` and
    ``rule``, and are sorted by them."""

    @property
    def instances(self) -> Table:
        """The rules of keys of which something is remembered."""
        ...

    @property
    def due(self) -> I64:
        """By instance, the watermark at which something is due; ``FOREVER`` for never."""
        ...

    @property
    def deadlines(self) -> I64:
        """By instance, the earliest deadline of a partial match; ``END_OF_TIME`` or later for
        none."""
        ...

    def oldest(self, times: I64) -> I64:
        """By instance, the time of the oldest event that opened a partial match, given those of
        events; ``FOREVER`` where that is not known."""
        ...

    @property
    def live(self) -> I64:
        """By instance, the number of partial matches."""
        ...

    @property
    def events(self) -> I64:
        """The numbers of the events that are held, each once or more."""
        ...

    def renumber(self, keys: I64, events: I64) -> None:
        """Give keys and events other numbers, in place: those that stand at the old ones."""
        ...

    def of_instances(self, wanted: Flags) -> Self:
        """The part of the ``wanted`` instances, with the same numbers."""
        ...

    @classmethod
    def together(cls, parts: Sequence[Self], keys: I64, events: I64) -> Self:
        """Join several, in this order; ``keys`` and ``events``: where the numbers of each part
        begin."""
        ...

    def of_keys(self, wanted: Flags, of_events: Flags) -> Self:
        """The part of the ``wanted`` keys, which hold the events ``of_events``, with the same
        numbers."""
        ...


class StoredTable(NamedTuple):
    """A table of what an engine remembers, as it is stored: the ``columns`` of records ``kind``.

    Its rows belong to instances, as many as each says in its column ``name``; or to keys
    (``of_keys``): their own ``key``, or that of their ``event``. ``events`` are columns with
    numbers of events, ``rows`` those with numbers of the key's rows in another table (``NONE``:
    of none)."""

    name: str
    kind: np.dtype[np.void]
    columns: tuple[str, ...]
    of_keys: bool = False
    events: tuple[str, ...] = ()
    rows: Mapping[str, str] = MappingProxyType({})


class Stored(NamedTuple):
    """The stored form of an engine's state. ``of`` makes the state of its tables, of which
    ``instances`` are the first; ``due`` gives when instances are due, from a reader of their
    columns."""

    of: Callable[..., Remembered]
    tables: tuple[StoredTable, ...]
    due: Callable[[Callable[[str], I64]], I64]

    @property
    def nothing(self) -> Remembered:
        """The state at the start."""
        return self.of(*(np.zeros(0, table.kind) for table in self.tables))


State = TypeVar("State", bound=Remembered)


class Engine(Protocol[State]):
    """Applies some of the rules of a partitioning to many keys at once."""

    def run(
        self, state: State, fresh: NewEvents, watermark: int, names: Names
    ) -> Generator[Outputs, None, State]:
        """Apply new events, and move all keys to ``watermark``. Yields what is found in pieces of
        bounded size, and returns what is remembered from there on, whose events are numbers of the
        run's."""
        ...

    def live(
        self, state: State, events: EventTable, keys: Bytes, names: Names
    ) -> Iterator[PartialMatch]:
        """The partial matches, in the author's terms."""
        ...
