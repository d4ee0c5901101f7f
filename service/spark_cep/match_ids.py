"""Match ids and row ids: the same match or row of a match has the same id in every run, batch cut
and partitioning.

A match id is the BLAKE2b-128 of rule id, rule version, key and, per step, the coordinates of its
events in the order taken; a row id that of rule id, rule version, key, match id if there is one,
row number and the coordinates of the row's event. Every text and list carries its length in front,
so no two different inputs share an encoding. Steps are taken by name, so the order of the mapping
does not matter. The encoding is part of the public contract: consumers recognise matches and rows
across releases by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from struct import Struct

from spark_cep.model import MatchRow, TakenEvent

PERSON = b"spark-cep-match1"
ROW_PERSON = b"spark-cep-row1"
_INTEGER = Struct(">q").pack
_PLACE = Struct(">qq").pack


def match_id(
    rule_id: str,
    rule_version: int,
    key: str | None,
    steps: Mapping[str, Sequence[TakenEvent]],
) -> str:
    """32 hexadecimal digits for the match of ``rule_id`` and ``key`` with the events of
    ``steps``."""
    taken = [(name, steps[name]) for name in sorted(steps) if steps[name]]
    parts = [
        _name(rule_id),
        _INTEGER(rule_version),
        _optional(key),
        _INTEGER(len(taken)),
    ]
    for name, events in taken:
        parts += (_name(name), _INTEGER(len(events)))
        for event in events:
            topic, partition, offset = event.at
            parts += (_name(topic), _PLACE(partition, offset))
    return blake2b(b"".join(parts), digest_size=16, person=PERSON).hexdigest()


def row_id(row: MatchRow) -> str:
    """32 hexadecimal digits for a row of a result with ALL ROWS PER MATCH."""
    topic, partition, offset = row.event.at
    parts = (
        _name(row.rule_id),
        _INTEGER(row.rule_version),
        _optional(row.key),
        _optional(row.match_id),
        _INTEGER(row.row),
        _name(topic),
        _PLACE(partition, offset),
    )
    return blake2b(b"".join(parts), digest_size=16, person=ROW_PERSON).hexdigest()


def _optional(value: str | None) -> bytes:
    return b"\x00" if value is None else b"\x01" + _text(value)


def _text(value: str) -> bytes:
    encoded = value.encode("utf-8", "surrogatepass")
    return _INTEGER(len(encoded)) + encoded


#: Of rules, steps and topics there are few, and they come again and again.
_name = lru_cache(4096)(_text)
