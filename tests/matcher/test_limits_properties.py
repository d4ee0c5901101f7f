"""Limits are exact, for random rules and streams: never more than allowed after any event, and
nothing is dropped while what is held fits. The reference; counting is this file's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.findings.partial import Finished, Partial, RuleState
from spark_cep.model import Coordinates
from spark_cep.pattern.tree import Limits, OnLimit, Rule, Skip
from tests.matcher.runs import END_OF_TIME, records
from tests.matcher.strategies import rules, streams
from tests.oracle import Seen
from tests.reference.found import idle
from tests.reference.keyed import KeyedMatcher, KeyState
from tests.reference.local import EventReader, Record

pytestmark = pytest.mark.slow

property_of = settings(
    max_examples=150,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)

POLICIES = st.sampled_from(OnLimit)
STREAMS = streams(most=14)
UNLIMITED = 10**9
BOUNDS = ("partial_matches", "events")

#: The state that something held stands in (``None``: a match held back), and its events by step.
Held = tuple[int | None, tuple[tuple[int, Coordinates], ...]]


@dataclass
class Run:
    """One rule with limits, over the events of one key."""

    rule: Rule
    partial_matches: int = UNLIMITED
    events: int = UNLIMITED
    on_limit: OnLimit = OnLimit.DROP_OLDEST
    outputs: Outputs = field(default_factory=Outputs, init=False)
    state: KeyState = field(default_factory=KeyState, init=False)

    def __post_init__(self) -> None:
        limits = Limits(self.partial_matches, self.events, self.on_limit)
        (part,) = compile_rules([replace(self.rule, limits=limits)]).partitionings
        self.matcher = KeyedMatcher(part)
        self.reader = EventReader(part, RecordTypes())

    def take(self, taken: Sequence[Record], watermark: int | None = None) -> None:
        """Apply the records, and move time to the last of them."""
        events = [self.reader.event(record, self.outputs) for record in taken]
        moved_to = taken[-1].time if watermark is None else watermark
        self.matcher.advance("k", self.state, events, moved_to, self.outputs)

    def one_by_one(self, stream: Sequence[Seen]) -> Iterator[RuleState]:
        """Apply event by event, those of one time too, with the state after each."""
        for number, record in enumerate(records("k", stream)):
            # Events of one time cannot be separated by the watermark, so each gets its own time.
            self.take([replace(record, time=record.time * 100 + number)])
            yield self.rule_state

    @property
    def rule_state(self) -> RuleState:
        """The state, which is not there when nothing is held."""
        return self.state.rules.get(0) or RuleState()

    @property
    def dropped(self) -> int:
        """How many were dropped so far."""
        return self.outputs.counts["r", "dropped"]

    @property
    def letters(self) -> list[Coordinates]:
        """The events at which a limit was reported."""
        found = [one.at for one in self.outputs.dead_letters if one.reason == "limit_reached"]
        assert len(found) == len(self.outputs.dead_letters)
        return found

    @property
    def found(self) -> list[tuple[str, int]]:
        """Matches and timeouts, with their times."""
        matches = [(match.match_id, match.time) for match in self.outputs.matches]
        return sorted(matches + [(t.match_id, t.deadline) for t in self.outputs.timeouts])


def spread(rule: Rule) -> Rule:
    """The rule with its durations as wide as :meth:`Run.one_by_one` makes the stream."""
    within = rule.within
    longer = replace(
        within,
        max_ms=None if within.max_ms is None else within.max_ms * 100,
        gap_ms=None if within.gap_ms is None else within.gap_ms * 100,
    )
    return replace(rule, within=longer)


RULES = rules(gaps=False).map(spread)


def held(state: RuleState) -> list[Held]:
    """All that counts as held."""
    everything: list[Partial | Finished] = [*state.partials, *state.finished]
    return [
        (
            each.state if isinstance(each, Partial) else None,
            tuple((taken.step, taken.event.at) for taken in each.last.chain()),
        )
        for each in everything
    ]


def events_of(state: RuleState) -> set[Coordinates]:
    """The events that are held, each once."""
    return {at for _, chain in held(state) for _, at in chain}


def start(one: Held) -> Coordinates:
    """The event that began it."""
    return one[1][-1][1]


def most_held(rule: Rule, stream: list[Seen]) -> dict[str, int]:
    """The most that is ever held without limits, by the name of the bound."""
    most = dict.fromkeys(BOUNDS, 0)
    for state in Run(rule).one_by_one(stream):
        most["partial_matches"] = max(most["partial_matches"], len(held(state)))
        most["events"] = max(most["events"], len(events_of(state)))
    return most


@st.composite
def too_small(
    draw: st.DrawFn, names: Sequence[str] = BOUNDS
) -> tuple[Rule, list[Seen], dict[str, int], OnLimit]:
    """A rule and a stream with a policy, and one bound of those named or both so small that it is
    met."""
    rule, stream = draw(RULES), draw(STREAMS)
    held_by_name = most_held(rule, stream)
    most = {name: held_by_name[name] for name in names if held_by_name[name] > 1}
    assume(most)
    chosen = draw(st.sampled_from([[name] for name in most] + [list(most)]))
    bounds = {name: draw(st.integers(1, most[name] - 1)) for name in chosen}
    return rule, stream, bounds, draw(POLICIES)


Case = tuple[Rule, list[Seen], dict[str, int], OnLimit]


@property_of
@given(too_small())
def test_bounds_hold_after_every_event(case: Case) -> None:
    """Partial and held matches within the one bound, their events within the other, whatever the
    policy."""
    rule, stream, bounds, policy = case
    run = Run(rule, on_limit=policy, **bounds)
    for state in run.one_by_one(stream):
        assert len(held(state)) <= run.partial_matches
        assert len(events_of(state)) <= run.events
    event(f"{policy.value} by {' and '.join(bounds)}")
    assert run.dropped > 0


@property_of
@given(RULES, STREAMS, POLICIES, st.sampled_from(BOUNDS))
def test_the_bound_is_met_exactly(
    rule: Rule, stream: list[Seen], policy: OnLimit, bound: str
) -> None:
    """With as much allowed as is ever held the limit changes nothing; with one less it is met."""
    most = most_held(rule, stream)[bound]
    assume(most > 0)
    free, exact = Run(rule), Run(rule, on_limit=policy, **{bound: most})
    for run in (free, exact):
        list(run.one_by_one(stream))
    free.take([], END_OF_TIME)
    exact.take([], END_OF_TIME)
    assert (exact.dropped, exact.letters, exact.found) == (0, [], free.found)
    if most > 1:
        tight = Run(rule, on_limit=policy, **{bound: most - 1})
        list(tight.one_by_one(stream))
        assert tight.dropped > 0
        assert tight.letters


@property_of
@given(too_small())
def test_an_episode_is_reported_once(case: Case) -> None:
    """A dead letter where dropping begins, at that event, and none while it goes on; none without
    anything dropped."""
    rule, stream, bounds, policy = case
    run = Run(rule, on_limit=policy, **bounds)
    episodes: list[Coordinates] = []
    going_on = False
    before = 0
    for number, state in enumerate(run.one_by_one(stream)):
        dropped = run.dropped > before
        before = run.dropped
        if dropped and not going_on:
            episodes.append(Coordinates("t", 0, number))
        # Nothing dropped ends an episode only where something changed, or nothing is left.
        going_on = dropped or (going_on and state.limited)
        going_on = going_on and not idle(state)
    event(f"episodes: {min(len(episodes), 3)}")
    assert run.letters == episodes


@property_of
@given(too_small(["partial_matches"]))
def test_what_goes_first(case: Case) -> None:
    """At the first event beyond the bound: only the oldest starts go, only the newest, or all; and
    no more of them than must."""
    rule, stream, bounds, policy = case
    free, bounded = Run(rule), Run(rule, on_limit=policy, **bounds)
    for all_held, state in zip(free.one_by_one(stream), bounded.one_by_one(stream), strict=True):
        wanted, kept = held(all_held), held(state)
        if not bounded.dropped:
            assert kept == wanted
            continue
        event(policy.value)
        gone = list(wanted)
        for one in kept:
            gone.remove(one)
        if policy is OnLimit.PAUSE_RULE:
            assert (kept, state.paused) == ([], True)
        elif policy is OnLimit.REJECT_NEW:
            assert len(kept) == bounded.partial_matches
            assert max(map(start, kept)) <= min(map(start, gone))
        else:
            # What went may have released held matches, which then are not among the kept.
            skips = rule.after_match.strategy is not Skip.NO_SKIP
            assert skips or len(kept) == bounded.partial_matches
            dropped = [start(one) for one in gone if one[0] is not None]
            assert all(start(one) >= max(dropped, default=start(one)) for one in kept)
        return


@property_of
@given(too_small(), st.data())
def test_batches_do_not_matter(case: Case, data: st.DataObject) -> None:
    """What is dropped, reported and found is the same however the stream is cut."""
    rule, stream, bounds, policy = case
    fed = list(records("k", stream))
    whole, cut = Run(rule, on_limit=policy, **bounds), Run(rule, on_limit=policy, **bounds)
    whole.take(fed, END_OF_TIME)
    batch: list[Record] = []
    for number, record in enumerate(fed):
        batch.append(record)
        later = fed[number + 1].time if number + 1 < len(fed) else END_OF_TIME
        if record.time < later and data.draw(st.booleans()):
            cut.take(batch)
            batch = []
    cut.take(batch, END_OF_TIME)
    assert (cut.dropped, cut.letters, cut.found) == (whole.dropped, whole.letters, whole.found)
