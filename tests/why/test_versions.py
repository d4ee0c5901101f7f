"""What became of partial matches when another version of their rule came."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep import Pattern
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.tree import PreviousVersion, Rule
from spark_cep.testkit import RuleTest
from spark_cep.why.account import Account, EndReason, EventState
from tests.matcher.strategies import keyed_streams, rules
from tests.reference.local import Record
from tests.why.row_pattern.test_account import SCHEMA, rule_text
from tests.why.running import taken


def version(number: int, last: str = "b", **fields: Any) -> Rule:
    """A version: an a, then ``last``."""
    pattern = Pattern.begin("a").where("kind = 'a'").followed_by("b").where(f"kind = '{last}'")
    return pattern.within("1 hour").rule("r", key="user", version=number, **fields)


def send(kit: RuleTest, *kinds: str) -> None:
    """Events of ann, one a second."""
    for kind in kinds:
        kit.send(user="ann", kind=kind)
        kit.advance("1 second")


def changed(by: Rule, *kinds: str) -> RuleTest:
    """A kit in which version 1 has taken an a when another version comes, and what follows."""
    kit = RuleTest(version(1))
    send(kit, "a")
    kit.replace(by)
    send(kit, *kinds)
    return kit


def ends(account: Account) -> list[tuple[EndReason, str]]:
    """The ends of partial matches."""
    found = [each.ending for each in account.partials.values()]
    return [(each.reason, each.detail) for each in found if each is not None]


def test_restart() -> None:
    """The partial matches of the version before end with the change; the new one starts empty."""
    kit = changed(version(2), "b", "a", "b")
    assert [match.rule_version for match in kit.matches] == [2]
    before = kit.why("ann", version=1)
    assert ends(before.account) == [
        (EndReason.REPLACED, "version 2 has replaced version 1 (previous_version: restart)")
    ]
    assert before.account.matches == []
    assert before.account.starts.events == 1
    assert (
        "2026-01-01T00:00:01Z  version 2 has replaced version 1 (previous_version: restart)\n"
        "    1 (a) ends, replaced version: version 2 has replaced version 1"
    ) in repr(before)
    account = kit.why("ann").account
    assert account.rule_version == 2
    assert account.matches == [kit.matches[0].match_id]
    assert [moment.event.number for moment in account.moments if moment.event] == [1, 2, 3]
    text = kit.explain()
    assert "ended: r, key 'ann': a 1 at 2026-01-01T00:00:01Z, replaced version: version 2" in text


def test_drain() -> None:
    """The version before finishes what it has begun, and begins nothing."""
    kit = changed(version(2, previous_version="drain"), "a", "b")
    assert sorted(match.rule_version for match in kit.matches) == [1, 2]
    account = kit.why("ann", version=1).account
    assert account.matches == [m.match_id for m in kit.matches if m.rule_version == 1]
    assert [moment.note for moment in account.moments] == [
        "",
        "version 2 replaces version 1, which finishes what it has begun (previous_version: drain)",
        "begins nothing: it is the next version's, and this one drains",
        "begins nothing: it is the next version's, and this one drains",
    ]
    assert len(account.partials) == 1


def test_the_end_of_draining() -> None:
    """What lives at the limit ends there."""
    kit = changed(version(2, previous_version="drain", drain_limit="10 seconds"), "x")
    kit.advance("1 minute")
    send(kit, "b")
    account = kit.why("ann", version=1).account
    detail = "version 1 has drained for as long as it may: 10 seconds (drain_limit)"
    assert ends(account) == [(EndReason.REPLACED, detail)]
    assert account.moments[-1].state is EventState.UNSEEN
    assert kit.matches == []


def test_carry() -> None:
    """Partial matches that the new version has a place for go on as its own."""
    kit = changed(version(2, "c", previous_version="carry"), "b", "c")
    (match,) = kit.matches
    assert match.rule_version == 2
    ((reason, detail),) = ends(kit.why("ann", version=1).account)
    assert reason is EndReason.REPLACED
    assert detail == (
        "version 2 has replaced version 1 (previous_version: carry), and goes on with it"
    )
    account = kit.why("ann").account
    assert account.matches == [match.match_id]
    earlier, begins, passed, taking = account.moments
    assert earlier.state is EventState.EARLIER
    assert begins.note == "version 2 begins, and takes over 1"
    assert [turn.partial for turn in passed.turns] == [1]
    assert [turn.took for turn in taking.turns] == [(("b", 1),)]
    assert account.starts.events == 2


def test_what_cannot_be_carried() -> None:
    """A partial match that another condition led to ends."""
    pattern = Pattern.begin("a").where("kind <> 'x'").followed_by("b").where("kind = 'b'")
    by = pattern.within("1 hour").rule("r", key="user", version=2, previous_version="carry")
    kit = changed(by, "b")
    ((reason, detail),) = ends(kit.why("ann", version=1).account)
    assert reason is EndReason.REPLACED
    assert detail.endswith("and cannot take it over: what led to it has changed, or its time is"
                           " over by the new version")  # fmt: skip
    assert kit.matches == []
    assert not any("takes over" in moment.note for moment in kit.why("ann").account.moments)


def test_a_version_that_begins_later() -> None:
    """The version before goes on until then."""
    by = version(2, effective_from="2026-01-01T00:00:03Z")
    kit = changed(by, "a", "x", "b")
    account = kit.why("ann", version=1).account
    assert {reason for reason, _ in ends(account)} == {EndReason.REPLACED}
    assert len(account.partials) == 2
    states = [moment.state for moment in kit.why("ann").account.moments if moment.event]
    assert states == [EventState.TOO_EARLY, EventState.TOO_EARLY, EventState.PASSED]


def test_a_rule_that_is_gone() -> None:
    """Its partial matches end with it."""
    kit = RuleTest([version(1), Pattern.begin("x").rule("other", key="user")])
    send(kit, "a")
    kit.replace(Pattern.begin("x").rule("other", key="user"))
    assert kit.partial_matches == []
    account = kit.why("ann", rule="r").account
    assert ends(account) == [(EndReason.REPLACED, "version 1 is gone: the rule was removed")]


def test_the_same_version_with_other_limits() -> None:
    """Partial matches stay, and go on under the new limits."""
    kit = changed(version(1, cooldown="1 hour"), "b", "a", "b")
    account = kit.why("ann").account
    assert account.matches == [kit.matches[0].match_id]
    assert [reason for reason, _ in ends(account)] == [EndReason.MATCH, EndReason.COOLDOWN]


def test_an_event_that_waited() -> None:
    """It is no longer the version's that has gone."""
    kit = RuleTest(version(1))
    kit.send(user="ann", kind="a")
    kit.replace(version(2))
    kit.advance("1 second")
    (moment, _) = kit.why("ann", version=1).account.moments
    assert moment.state is EventState.UNSEEN


@pytest.mark.parametrize("previous", ["restart", "drain"])
def test_in_sql(previous: str) -> None:
    """Attempts end, or are finished, too."""
    texts = [
        rule_text().replace("version: 1", f"version: {number}{more}")
        for number, more in ((1, ""), (2, f"\nprevious_version: {previous}"))
    ]
    kit = RuleTest(load_rules(texts[0], "dip.yaml"), schemas={"trades": SCHEMA})
    for price in (12, 11):
        kit.send(symbol="X", price=price, at=kit.now)
        kit.advance("1 second")
    kit.replace(load_rules(texts[1], "dip.yaml"))
    kit.send(symbol="X", price=13, at=kit.now)
    kit.advance("1 second")
    account = kit.why("X", version=1).account
    assert account.matches == [match.match_id for match in kit.matches]
    if previous == "restart":
        assert {reason for reason, _ in ends(account)} == {EndReason.REPLACED}
        assert kit.matches == []
    else:
        assert len(kit.matches) == 1


def test_no_such_version() -> None:
    """Those that have run are named."""
    kit = changed(version(2))
    with pytest.raises(ValueError, match="rule r has no version 3; there were 1, 2"):
        kit.why("ann", version=3)


@st.composite
def versions(draw: st.DrawFn) -> tuple[Rule, Rule]:
    """A rule, and what replaces it: another pattern, or the same with another window."""
    first: Rule = draw(rules())
    other = draw(rules() | st.just(first))
    previous = draw(st.sampled_from(PreviousVersion))
    limit = draw(st.none() | st.integers(1, 6)) if previous is PreviousVersion.DRAIN else None
    later = st.none() if previous is PreviousVersion.CARRY else st.none() | st.integers(0, 9)
    return first, replace(
        other,
        version=2,
        previous_version=previous,
        drain_limit_ms=limit,
        effective_from_ms=draw(later),
    )


@given(versions(), keyed_streams(9), st.integers(0, 9), st.sampled_from([0, 5, 10_000]))
@settings(max_examples=15)
@pytest.mark.slow
def test_verdicts_are_the_engines(
    both: tuple[Rule, Rule], records: list[Record], place: int, behind: int
) -> None:
    """For each version the account finds what the engine finds; what it says is open is."""
    first, second = both
    kit = RuleTest(first, start=-20, allowed_disorder=None)
    for number, record in enumerate(records):
        if number == place:
            kit.replace(second)
        kit.send(record.values, at=record.time)
        if number % 2:
            kit.watermark(record.time - 2)
    kit.watermark(max((each.time for each in records), default=0) + behind)
    for number in (1, 2) if place < len(records) else (1,):
        _assert_agrees(kit, "k", number)


def _assert_agrees(kit: RuleTest, key: str, number: int) -> None:
    account = kit.why(key, version=number).account
    of = key, number
    matches = [m.match_id for m in kit.matches if (m.key, m.rule_version) == of]
    timeouts = [m.match_id for m in kit.timeouts if (m.key, m.rule_version) == of]
    assert (account.matches, account.timeouts) == (matches, timeouts)
    live = [*kit.partial_matches, *kit.held_matches]
    still = {taken(each.steps) for each in live if (each.key, each.rule_version) == of}
    assert {taken(each.steps) for each in account.open} == still
    begun = [number for moment in account.moments for _, number in moment.started]
    assert len(begun) == len(set(begun))
