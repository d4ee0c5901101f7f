"""Match ids: the same match has the same id in every run, batch cut and partitioning.

An id is the BLAKE2b-128 of rule id, rule version, key and, per step, the coordinates of its events
in the order taken. Every text and list carries its length in front, so no two different inputs
share an encoding. Steps are taken by name, so the order of the mapping does not matter. The
encoding is part of the public contract: consumers recognise a match across releases by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

from service.model import TakenEvent

_PERSON = b"spark-cep-match1"


def match_id(
    rule_id: str,
    rule_version: int,
    key: str | None,
    steps: Mapping[str, Sequence[TakenEvent]],
) -> str:
    """32 hexadecimal digits for the match of ``rule_id`` and ``key`` with the events of
    ``steps``."""
    digest = blake2b(digest_size=16, person=_PERSON)
    for part in _parts(rule_id, rule_version, key, steps):
        digest.update(part)
    return digest.hexdigest()


def _parts(
    rule_id: str,
    rule_version: int,
    key: str | None,
    steps: Mapping[str, Sequence[TakenEvent]],
) -> Iterator[bytes]:
    yield _text(rule_id)
    yield _integer(rule_version)
    yield b"\x00" if key is None else b"\x01" + _text(key)
    taken = [(name, steps[name]) for name in sorted(steps) if steps[name]]
    yield _integer(len(taken))
    for name, events in taken:
        yield _text(name)
        yield _integer(len(events))
        for event in events:
            yield _text(event.at.topic)
            yield _integer(event.at.partition)
            yield _integer(event.at.offset)


def _text(value: str) -> bytes:
    encoded = value.encode("utf-8", "surrogatepass")
    return _integer(len(encoded)) + encoded


def _integer(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)
