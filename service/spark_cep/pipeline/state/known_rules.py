"""The rules that a key group's state knows, and what its bits and columns meant under which rules.

A rule gets a number when it comes, which no other gets, and which names it in what is stored of
keys. So what a rule has left that went, and came again, is not taken up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from spark_cep.columns.compilation import NEVER
from spark_cep.columns.vectors import Vector, nulls_of, reader, vector
from spark_cep.compiler.plan import Plan
from spark_cep.compiler.rule_set import AnyPlan, Partitioning, RuleSetPlan
from spark_cep.errors import RESTORE, StateError
from spark_cep.matcher.batch.events import EventTable, SlotType
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.batch.meaning import Meaning
from spark_cep.matcher.keys import KeysMatcher, KeysState
from spark_cep.pattern.expressions.values.casting import caster
from spark_cep.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    TIMESTAMP,
    DecimalType,
    SqlType,
)
from spark_cep.pipeline.state.carried import Carry, moved

_WHOLE_TYPES = {str(kind): kind for kind in (INT, BIGINT, BOOLEAN, DATE, TIMESTAMP)}


@dataclass(slots=True)
class KnownRule:
    """A rule that the state knows: identity, number, live partial matches, and the event time at
    which it ``begins``; events before that are not the rule's."""

    id: str
    version: int
    number: int
    live: int
    begins: int


class KnownRules:
    """The rules of a plan, as the state of one key group knows them. ``matchers`` by the prefix of
    their partitioning's entries; ``stored``: what :meth:`packed` gave under the rule set before;
    ``watermark``: that of the batch before; ``begins``: the event time at which a rule begins that
    is new, behind all that was read before it came."""

    def __init__(
        self,
        plan: RuleSetPlan,
        matchers: Mapping[str, KeysMatcher],
        stored: Mapping[str, Any] | None = None,
        watermark: int = 0,
        begins: int = NEVER,
    ) -> None:
        stored = stored or {"rules": {}, "next_rule": 0, "meanings": {}}
        known = {text: KnownRule(*values) for text, values in stored["rules"].items()}
        #: What the next rule that comes is called.
        self._next = stored["next_rule"]
        self._rules: dict[str, KnownRule] = {}
        #: By number of the old version.
        self._carried = {number: Carry(*values) for number, *values in stored.get("carried", ())}
        #: Those that are new with this rule set, by fingerprint of the new version.
        self.carried: dict[str, Carry] = {}
        for each in plan.plans:
            rule = known.pop(each.fingerprint, None)
            if rule is None:
                rule = KnownRule(each.rule.id, each.rule.version, self._next, 0, begins)
                self._next += 1
                for old in plan.carried.get(each.fingerprint, ()):
                    if self._carry(old, each, known, rule, watermark):
                        break
            self._rules[each.fingerprint] = rule
        #: Id, version and partial matches of rules that went, or changed, since the last batch.
        self.gone = [(rule.id, rule.version, rule.live) for rule in known.values()]
        self._matchers = matchers
        self._now = {
            prefix: matcher.meaning(tuple(self.numbers(matcher.fingerprints)))
            for prefix, matcher in matchers.items()
        }
        self._meanings = {
            fingerprint: Meaning(*map(tuple, meant))
            for fingerprint, meant in stored["meanings"].items()
        }
        self._meanings |= {each.fingerprint: each for each in self._now.values()}

    def _carry(
        self,
        old: AnyPlan,
        new: AnyPlan,
        known: dict[str, KnownRule],
        rule: KnownRule,
        watermark: int,
    ) -> bool:
        """Have ``rule``, which is new, take over what ``old`` has, if it is there. Rules in SQL
        have nothing that corresponds."""
        was = known.get(old.fingerprint)
        if was is None or not isinstance(old, Plan) or not isinstance(new, Plan):
            return False
        carry = Carry.between(old, new, rule.number, watermark)
        if carry is None:
            return False
        del known[old.fingerprint]
        self._carried[was.number] = self.carried[new.fingerprint] = carry
        # As many at most: those that end are found when they are read.
        rule.live, rule.begins = was.live, was.begins
        return True

    def meanings(self) -> dict[str, bytes]:
        """Return the layout of bits and columns under this rule set, by the prefix of the
        partitioning."""
        return {prefix: meaning.fingerprint for prefix, meaning in self._now.items()}

    def same_buckets(self, fingerprint: bytes, prefix: str) -> bool:
        """Return whether columns of a partitioning mean what they meant under another rule set, and
        no rule of it is carried over."""
        old, now = self._meanings.get(fingerprint), self._now.get(prefix)
        if old is None or now is None or old.columns != now.columns:
            return False
        return self._carried.keys().isdisjoint(old.rules)

    def packed(self, meanings: Collection[bytes]) -> dict[str, Any]:
        """Plain values. ``meanings``: fingerprints of those that are still needed."""
        needed = {
            number
            for fingerprint, meaning in self._meanings.items()
            if fingerprint in meanings
            for number in meaning.rules
        }
        carried = []
        for number, carry in sorted(self._carried.items()):
            if number in needed:
                carried.append([number, *astuple(carry)])
                needed.add(carry.to)
        return {
            "carried": carried,
            "rules": {text: list(astuple(rule)) for text, rule in self._rules.items()},
            "next_rule": self._next,
            "meanings": {
                fingerprint: list(astuple(meaning))
                for fingerprint, meaning in self._meanings.items()
                if fingerprint in meanings
            },
        }

    def numbers(self, fingerprints: Sequence[str]) -> list[int]:
        """Return the numbers of these rules in the stored state."""
        return [self._rules[text].number for text in fingerprints]

    def renewed(
        self,
        meaning: bytes,
        prefix: str,
        fingerprints: Sequence[str],
        read: Callable[[Mapping[int, int]], KeysState],
    ) -> KeysState:
        """Keys that were written under another rule set, in the terms of this one: columns, and
        partial matches that move to newer versions. ``read`` is given the places of rules by
        number."""
        places = {number: place for place, number in enumerate(self.numbers(fingerprints))}
        rules = {self._rules[text].number: self._rules[text] for text in fingerprints}
        carried = []
        # A version has a higher number than those that move to it.
        for number, carry in sorted(self._carried.items(), reverse=True):
            if carry.to in places:
                places[number], rules[number] = len(places), rules[carry.to]
                carried.append((number, carry))
        state = read(places)
        self.translation(meaning, prefix).state(state)
        for number, carry in reversed(carried):
            state, ended = moved(state, places[number], places[carry.to], carry)
            if ended:
                rules[number].live -= ended
                self.gone.append((rules[number].id, carry.version, ended))
        return state

    def live(self) -> dict[tuple[str, int], int]:
        """Return the number of live partial matches by rule id and version."""
        return {(rule.id, rule.version): rule.live for rule in self._rules.values()}

    def beginning(self, watermark: int) -> dict[tuple[str, int], int]:
        """Return the event times that ``watermark`` has not reached at which rules begin, by rule
        id and version."""
        return {
            (rule.id, rule.version): rule.begins
            for rule in self._rules.values()
            if rule.begins > watermark + 1
        }

    def begin_by(self, time: int) -> None:
        """Let rules that would begin later begin at ``time``."""
        for rule in self._rules.values():
            rule.begins = min(rule.begins, time)

    def unseen_before(self, partitioning: Partitioning, watermark: int) -> dict[int, int]:
        """Return the bits that hide events from rules which have not begun, by the time at which
        these begin."""
        bits: dict[int, int] = {}
        for number, planned in enumerate(partitioning.rules):
            begins = self._rules[planned.plan.fingerprint].begins
            if begins > watermark + 1:
                bits[begins] = bits.get(begins, 0) | 1 << partitioning.unseen(number)
        return bits

    def live_of(self, fingerprint: str) -> int:
        """Return the number of live partial matches of one rule; 0 where there is no such rule."""
        rule = self._rules.get(fingerprint)
        return 0 if rule is None else rule.live

    def end(self, fingerprint: str) -> None:
        """The partial matches of a rule end here: under its new number there are none."""
        rule = self._rules.get(fingerprint)
        if rule is not None:
            self.gone.append((rule.id, rule.version, rule.live))
            rule.number, rule.live = self._next, 0
            self._next += 1

    def count(self, fingerprints: Sequence[str], state: KeysState, sign: int) -> None:
        """Partial matches of some keys come (``sign`` 1) or go (-1)."""
        live = np.zeros(len(fingerprints))
        for part in state.remembered:
            if not len(part.instances):
                continue
            live += np.bincount(part.instances["rule"], part.live, len(fingerprints))
        for fingerprint, count in zip(fingerprints, live.tolist(), strict=True):
            self._rules[fingerprint].live += sign * int(count)

    def translation(self, fingerprint: bytes, prefix: str) -> Translation:
        """From what bits and columns meant under another rule set. StateError when the state does
        not say it."""
        old = self._meanings.get(fingerprint)
        if old is None:
            raise StateError(
                "the state holds events of a rule set that the checkpoint does not describe:"
                f" it is damaged; {RESTORE}"
            )
        earlier = {carry.to: number for number, carry in self._carried.items()}
        return Translation(old, self._now[prefix], self._matchers[prefix].slots, earlier)


class Translation:
    """Rewrites events that were stored under another rule set: by name, what is new is NULL or not
    true. A column whose type has changed is brought to the new one. Events that wait are
    hidden from rules that came after they were read, and may begin matches of rules that drain
    since then. What waits for a rule that a newer version carries over waits for that one:
    ``earlier`` has the number of the version before."""

    def __init__(
        self,
        old: Meaning,
        now: Meaning,
        slots: Sequence[SlotType],
        earlier: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        bits = {name: bit for bit, name in enumerate(old.conditions)}
        self._bits = {
            bits[name]: number for number, name in enumerate(now.conditions) if name in bits
        }
        # An entry may hold events that were read before one of its rules was there, or drained.
        rules = {rule: bit for bit, rule in enumerate(old.rules, len(old.conditions))}
        self._set = 0
        for bit, rule in enumerate(now.rules, len(now.conditions)):
            was: int | None = rule
            while was is not None and was not in rules:
                was = earlier.get(was)
            if was is not None:
                self._bits[rules[was]] = bit
            else:
                self._set |= 1 << bit
            if rule in now.draining:
                early = bit + len(now.rules)
                if was is not None and was in old.draining:
                    self._bits[rules[was] + len(old.rules)] = early
                else:
                    self._set |= 1 << early
        before = {name.rpartition("|")[0]: number for number, name in enumerate(old.columns)}
        self._columns = [before.get(slot.name) for slot in slots]
        self._same = [
            place is not None and old.columns[place] == slot.meaning
            for place, slot in zip(self._columns, slots, strict=True)
        ]
        self._types = [name.rpartition("|")[2] for name in old.columns]
        self._slots = slots

    def state(self, state: KeysState) -> None:
        """The events that partial matches hold, in place."""
        self._events(state.events)

    def batch(self, batch: InputBatch) -> None:
        """Events that wait, in place."""
        batch.masks = [
            self._set | sum(1 << new for was, new in self._bits.items() if mask >> was & 1)
            for mask in batch.masks
        ]
        self._events(batch.events)

    def _events(self, events: EventTable) -> None:
        columns, count = events.columns, len(events)
        if columns is None:
            return
        moved = [
            nulls_of(slot.kind, count)
            if place is None
            else columns[place]
            if same
            else _converted(columns[place], self._types[place], slot)
            for place, same, slot in zip(self._columns, self._same, self._slots, strict=True)
        ]
        events.columns = moved or None


def _converted(column: Vector, was: str, slot: SlotType) -> Vector:
    """A column of a type that is named ``was``, brought to what the slot has now; NULL where that
    cannot be."""
    old = _whole_type(was)
    if (old, slot.kind) == (INT, BIGINT):
        return column
    read, cast = reader(column, old), _cast(slot.kind, known=bool(was))
    return vector([cast(read(row)) for row in range(len(column))], slot.kind, slot.name)


def _cast(kind: SqlType | None, *, known: bool) -> Callable[[Any], Any]:
    """Return a function that converts a value to a type, with ``None`` where that is impossible.
    ``known``: whether the type was known before."""
    if kind is None:
        return _unchanged
    try:
        cast = caster(DOUBLE if kind == FLOAT else kind)
    except KeyError:
        return _null if known else _unchanged

    def converted(value: Any) -> Any:
        try:
            return None if value is None else cast(value)
        except (ValueError, TypeError, ArithmeticError, AttributeError):
            return None

    return converted


def _unchanged(value: Any) -> Any:
    return value


def _null(_: Any) -> None:
    return None


def _whole_type(name: str) -> SqlType | None:
    """The type that is called so, if its values may stand as whole numbers."""
    if name.startswith("DECIMAL("):
        precision, scale = name.removeprefix("DECIMAL(").removesuffix(")").split(", ")
        return DecimalType(int(precision), int(scale))
    return _WHOLE_TYPES.get(name)
