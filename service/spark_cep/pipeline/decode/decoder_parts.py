"""The parts of a decoder: conditions that are evaluated, partitionings, columns of event time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from spark_cep.event_times import ISO_TEXT
from spark_cep.pattern.types import TIMESTAMP, SqlType
from spark_cep.pipeline.decode.evaluation import ColumnVector, Evaluation
from spark_cep.pipeline.decode.keys import KeyPart
from spark_cep.pipeline.decode.relevance import Relevance


class DecodedAtom(NamedTuple):
    """A condition of a step, as the rule says it."""

    rule: str
    version: int
    step: str | None
    text: str


@dataclass(frozen=True)
class Concerned:
    """A condition, ``mask`` of ``word``, that has a part which is evaluated; ``atoms``: what it
    stands for, for dead letters."""

    word: int
    mask: int
    atoms: tuple[DecodedAtom, ...]


@dataclass(frozen=True)
class DecodedCondition:
    """A part of conditions on events of record type ``type`` that is evaluated."""

    evaluation: Evaluation
    type: int
    targets: tuple[tuple[int, int], ...]
    concerned: tuple[Concerned, ...]


@dataclass(frozen=True)
class SlotVectors:
    """A column that travels to the matcher, of type ``kind``; by record type where it is."""

    kind: SqlType
    of: tuple[ColumnVector | None, ...]


@dataclass(frozen=True)
class Part:
    """One partitioning: its words among all; the parts of its key (none: all events have the same);
    by record type whether a rule reads it that needs a key, and one to which NULL is a key;
    ``of_steps``: the relevance to rules that need one; whether a rule emits the records' own
    bytes."""

    number: int
    first_word: int
    words: int
    key: tuple[KeyPart, ...]
    needs_key: tuple[bool, ...]
    takes_null: tuple[bool, ...]
    slots: tuple[SlotVectors, ...]
    relevance: Relevance
    of_steps: Relevance
    keeps_payload: bool


@dataclass(frozen=True)
class TimeColumn:
    """The column of a record type's event time (``None``: it is the record's own), and its unit.
    ``text``: the column itself, where that is text."""

    source: ColumnVector | Evaluation | None
    unit: str
    text: ColumnVector | None = None

    @property
    def in_micros(self) -> bool:
        """Return whether there may be something behind the millisecond."""
        if isinstance(self.source, ColumnVector) and self.source.kind == TIMESTAMP:
            return True
        return self.source is not None and self.unit in ("micros", ISO_TEXT)
