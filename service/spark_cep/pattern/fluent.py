"""Rules written in Python: ``Pattern.begin("fail").where("…").times(3).followed_by("ok")``.

The third way to write a rule, beside YAML and JSON. A pattern makes the same document, which is
loaded the same way, so the rule is the same, and so is all that is refused and warned about. The
methods are those of Flink CEP (``org.apache.flink.cep.pattern.Pattern``), with conditions in SQL
instead of functions. The order of the calls about one step does not matter.

``to_yaml`` gives a rule's text for a rules folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Final, Literal, NoReturn, TypedDict

from spark_cep.errors import Problem, RuleSetError
from spark_cep.pattern.document.canonical import to_yaml
from spark_cep.pattern.document.plain_data import load_data
from spark_cep.pattern.expressions import ExpressionError, parse
from spark_cep.pattern.tree import Rule

__all__ = ["SOURCE", "Duration", "Pattern", "RuleLimits", "to_yaml"]

SOURCE: Final = "<python>"
"""What problems of rules that were written in Python name instead of a file."""

Duration = str | timedelta
"""``"10 minutes"`` as in YAML, or a ``timedelta`` of whole milliseconds."""

_Fields = Mapping[str, object]


class RuleLimits(TypedDict, total=False):
    """The ``limits`` of a rule, by the words and with the defaults of YAML."""

    partial_matches: int
    events: int
    matches: int
    work: int
    on_limit: Literal["drop_oldest", "reject_new", "pause_rule"]


@dataclass(frozen=True, slots=True)
class _Condition:
    """The conditions that were given for one step, each with the word that joins it."""

    parts: tuple[tuple[str, str], ...]

    def text(self, steps: frozenset[str]) -> object:
        """All of them as one, or the first that is none by itself, to be refused."""
        joined = ""
        for word, part in self.parts:
            if len(self.parts) == 1 or not _stands_alone(part, steps):
                return part
            joined = f"({joined}) {word} ({part})" if joined else part
        return joined


@dataclass(frozen=True, slots=True, repr=False)
class Pattern:
    """Steps in order, and what holds for all of them: window and skip strategy.

    Begin with :meth:`begin`, end with :meth:`rule`. Immutable: every method returns a new pattern,
    so one may be the beginning of several. A pattern can be a group in another. Each field of a
    step is given once; given again it is refused with ``RuleSetError`` by the method itself. All
    other problems are found, together, by :meth:`rule`.

    ``steps``, ``window`` and ``skipping`` are the parts of the document so far; they may change
    between versions.
    """

    steps: tuple[_Fields, ...]
    window: _Fields = field(default_factory=dict)
    skipping: str | Mapping[str, str] | None = None

    @classmethod
    def begin(cls, name: str, group: Pattern | None = None) -> Pattern:
        """A pattern whose first step is ``name``, or whose first steps are ``group``, called
        ``name``. Flink: ``Pattern.begin``."""
        return cls((_step(name, None, group),))

    # Steps.

    def next(self, name: str, group: Pattern | None = None) -> Pattern:
        """Add a step, or a group, for the very next event (strict contiguity).
        Flink: ``next``."""
        return self._then(name, "next", group)

    def followed_by(self, name: str, group: Pattern | None = None) -> Pattern:
        """Add a step, or a group, for the next event that fits; others are passed over (relaxed
        contiguity). Flink: ``followedBy``."""
        return self._then(name, "followed_by", group)

    def followed_by_any(self, name: str, group: Pattern | None = None) -> Pattern:
        """Add a step, or a group, for any later event that fits; those that fit may be passed over
        too (non-deterministic relaxed contiguity). Flink: ``followedByAny``."""
        return self._then(name, "followed_by_any", group)

    def not_next(self, name: str) -> Pattern:
        """Add a step for what must not be the very next event. Flink: ``notNext``."""
        return self._then(name, "not_next", None)

    def not_followed_by(self, name: str) -> Pattern:
        """Add a step for what must not come before the next step's event or, at the end of the
        pattern, before the end of the window. Flink: ``notFollowedBy``."""
        return self._then(name, "not_followed_by", None)

    # What events the last step takes.

    def where(self, condition: str) -> Pattern:
        """SQL condition of the last step; with an earlier one, both must hold. Flink: ``where``."""
        return self._also("AND", condition)

    def or_where(self, condition: str) -> Pattern:
        """Another SQL condition of the last step: it, or what was given before, must hold.
        Flink: ``or``."""
        return self._also("OR", condition)

    def of_type(self, record: str) -> Pattern:
        """Record type, by full or short name, of the last step's events. Flink: ``subtype``."""
        return self._with(of_type=record)

    # How often the last step or group is repeated.

    def times(
        self, minimum: int, maximum: int | None = None, *, gap: Duration | None = None
    ) -> Pattern:
        """Repeat exactly ``minimum`` times, or up to ``maximum``; a ``minimum`` of 0 is optional.

        ``gap``: the time between two repetitions must be less. Flink: ``times``, with its
        ``windowTime``.
        """
        return self._repeat(minimum if maximum is None else f"{minimum}..{maximum}", gap)

    def times_or_more(self, minimum: int, *, gap: Duration | None = None) -> Pattern:
        """Repeat ``minimum`` times or more; ``gap`` as in :meth:`times`. Flink: ``timesOrMore``."""
        return self._repeat(f"{minimum}+", gap)

    def one_or_more(self, *, gap: Duration | None = None) -> Pattern:
        """Repeat once or more; ``gap`` as in :meth:`times`. Flink: ``oneOrMore``."""
        return self._repeat("1+", gap)

    def consecutive(self) -> Pattern:
        """No other event may come between repetitions (``loop: consecutive``).
        Flink: ``consecutive``."""
        return self._with(loop="consecutive")

    def allow_combinations(self) -> Pattern:
        """Repetitions may pass over events that fit (``loop: combinations``).
        Flink: ``allowCombinations``."""
        return self._with(loop="combinations")

    def greedy(self) -> Pattern:
        """Repeat as often as there are events. Flink: ``greedy``."""
        return self._flag("greedy")

    def optional(self) -> Pattern:
        """The last step or group may be left out. Flink: ``optional``."""
        return self._flag("optional")

    def until(self, condition: str) -> Pattern:
        """SQL condition; the event that satisfies it ends the loop and is not taken.
        Flink: ``until``."""
        return self._with(until=condition)

    # What holds for the whole pattern.

    def within(self, max: Duration | None = None, *, gap: Duration | None = None) -> Pattern:  # noqa: A002  the language's word
        """The window: less than ``max`` from first to last event, less than ``gap`` from each event
        to the next. Flink: ``within``, with ``WithinType``."""
        window = dict(self.window)
        for name, duration in (("max", max), ("gap", gap)):
            if duration is not None:
                if name in window:
                    _refuse_again(f"within.{name}", None)
                window[name] = duration
        return replace(self, window=window)

    def no_skip(self) -> Pattern:
        """Every match is a result; this is the default.
        Flink: ``AfterMatchSkipStrategy.noSkip``."""
        return self._skipping("no_skip")

    def skip_to_next(self) -> Pattern:
        """After a match, drop what starts with the same event.
        Flink: ``AfterMatchSkipStrategy.skipToNext``."""
        return self._skipping("skip_to_next")

    def skip_past_last_event(self) -> Pattern:
        """After a match, drop what starts at or before its last event.
        Flink: ``AfterMatchSkipStrategy.skipPastLastEvent``."""
        return self._skipping("skip_past_last_event")

    def skip_to_first(self, step: str, *, error_on_miss: bool = False) -> Pattern:
        """After a match, drop what starts before the first event of ``step`` in it.

        ``error_on_miss``: a match without such an event gives a dead letter. Flink:
        ``AfterMatchSkipStrategy.skipToFirst``, ``throwExceptionOnMiss``.
        """
        return self._skipping({"skip_to_first": step}, error_on_miss=error_on_miss)

    def skip_to_last(self, step: str, *, error_on_miss: bool = False) -> Pattern:
        """After a match, drop what starts before the last event of ``step`` in it;
        ``error_on_miss`` as in :meth:`skip_to_first`.
        Flink: ``AfterMatchSkipStrategy.skipToLast``."""
        return self._skipping({"skip_to_last": step}, error_on_miss=error_on_miss)

    # The end.

    def rule(
        self,
        id: str,  # noqa: A002  the language's word
        *,
        version: int = 1,
        previous_version: Literal["restart", "drain", "carry"] | None = None,
        drain_limit: Duration | None = None,
        key: str | Sequence[str] | None = None,
        events: str | Sequence[str] | None = None,
        measures: Mapping[str, str] | None = None,
        emit_events: Literal["all", "none"] | Sequence[str] | None = None,
        limits: RuleLimits | None = None,
        cooldown: Duration | None = None,
        effective_from: str | date | None = None,
        enabled: bool = True,
        mode: Literal["live", "shadow"] = "live",
        description: str = "",
        annotations: Mapping[str, str] | None = None,
    ) -> Rule:
        """The rule of this pattern, as the YAML document with the same fields would give it.

        Args:
            id: Name of the rule.
            version: A number from 1.
            previous_version: What becomes of the partial matches of the version that this one
                replaces: they end (``"restart"``, the default), it finishes what it has begun
                (``"drain"``), or they go on as this version's (``"carry"``).
            drain_limit: The longest time, in event time, for finishing it (``"drain"``).
            key: SQL expression over the event, or several; only events of one key meet.
            events: Name of an input, or several; default: the only one.
            measures: Name to SQL expression over the matched events (``emit.measures``).
            emit_events: What travels of each event (``emit.events``): its original bytes, nothing,
                or the named columns.
            limits: Most partial matches and events for one key, most matches and work of one event.
            cooldown: After a match of a key, none for that long.
            effective_from: Event time from which the rule runs: ISO 8601 text, a ``datetime``, or a
                ``date``; without a zone it is UTC.
            enabled: ``False``: the rule is checked, and does not run.
            mode: ``"shadow"``: its results go to a topic of their own.
            description: Text for people.
            annotations: Name to text with placeholders, which matches and timeouts carry.

        Raises:
            RuleSetError: The rule is refused; with every problem, by rule, step and field.
        """
        emit = _given(measures=measures, events=emit_events)
        document = _given(
            id=id,
            version=version,
            previous_version=previous_version,
            drain_limit=drain_limit,
            description=description or None,
            annotations=annotations,
            enabled=None if enabled is True else enabled,
            mode=None if mode == "live" else mode,
            effective_from=effective_from,
            events=events,
            key=key,
            pattern=_documents(self, frozenset(_names(self))),
            within=_within(self),
            after_match=self.skipping,
            emit=emit or None,
            limits=limits,
            cooldown=cooldown,
        )
        return load_data(document, SOURCE).rule

    def __repr__(self) -> str:
        steps = (f"{step.get('after', 'begin')} {step['step']}" for step in self.steps)
        return f"<Pattern: {', '.join(steps)}>"

    def _then(self, name: str, after: str, group: Pattern | None) -> Pattern:
        return replace(self, steps=(*self.steps, _step(name, after, group)))

    def _with(self, **fields: object) -> Pattern:
        *before, last = self.steps
        for name in fields:
            if name in last:
                _refuse_again(name, str(last["step"]))
        return replace(self, steps=(*before, {**last, **fields}))

    def _also(self, word: str, condition: str) -> Pattern:
        *before, last = self.steps
        before_it = last.get("where")
        parts = before_it.parts if isinstance(before_it, _Condition) else ()
        where = _Condition((*parts, (word, condition)))
        return replace(self, steps=(*before, {**last, "where": where}))

    def _repeat(self, times: int | str, gap: Duration | None) -> Pattern:
        return self._with(**_given(times=times, gap=gap))

    def _flag(self, name: str) -> Pattern:
        return self if name in self.steps[-1] else self._with(**{name: True})

    def _skipping(self, strategy: str | dict[str, str], *, error_on_miss: bool = False) -> Pattern:
        if self.skipping is not None:
            _refuse_again("after_match", None)
        if error_on_miss and isinstance(strategy, dict):
            strategy = {**strategy, "on_miss": "error"}
        return replace(self, skipping=strategy)


def _step(name: str, after: str | None, group: Pattern | None) -> _Fields:
    return _given(step=name, after=after, group=group)


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _refuse_again(name: str, step: str | None) -> NoReturn:
    message, allowed = f"`{name}` is said twice", "each of them once"
    problem = Problem(message, SOURCE, step=step, allowed=allowed, field=name)
    raise RuleSetError([problem])


def _names(pattern: Pattern) -> Iterator[str]:
    """The names of all steps and groups."""
    for step in pattern.steps:
        yield str(step["step"])
        group = step.get("group")
        if isinstance(group, Pattern):
            yield from _names(group)


def _documents(pattern: Pattern, names: frozenset[str]) -> list[dict[str, object]]:
    """The steps as the document has them; their conditions may refer to ``names``."""
    documents = []
    for step in pattern.steps:
        document = dict(step)
        where, group = step.get("where"), step.get("group")
        if isinstance(where, _Condition):
            document["where"] = where.text(names)
        if isinstance(group, Pattern):
            document["group"] = _documents(group, names)
            # A group has neither; the reader of documents says so.
            document |= _given(within=_within(group), after_match=group.skipping)
        documents.append(document)
    return documents


def _within(pattern: Pattern) -> object:
    return pattern.window.get("max") if "gap" not in pattern.window else pattern.window


def _stands_alone(condition: object, steps: frozenset[str]) -> bool:
    """Return whether it is a condition by itself: ``a) OR (b`` is one only between parentheses."""
    if not isinstance(condition, str):
        return False
    try:
        parse(condition.strip(), steps=steps)
    except ExpressionError:
        return False
    return True
