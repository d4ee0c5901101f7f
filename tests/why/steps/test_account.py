"""Why a rule of steps did, or did not, match: each reason, with the values seen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spark_cep import Pattern
from spark_cep.pattern.tree import Rule
from spark_cep.testkit import RuleTest
from spark_cep.why.account import Account, EndReason, EventState, Moment, Passed, Unmet
from spark_cep.why.text import account_text


def sent(pattern: Pattern, *events: dict[str, Any], **fields: Any) -> RuleTest:
    """A kit for the pattern, by user, after events of ann, one a second."""
    return fed(pattern.rule("r", key="user", **fields), *events)


def fed(rule: Rule, *events: dict[str, Any]) -> RuleTest:
    """A kit for the rule after the events."""
    kit = RuleTest(rule)
    for event in events:
        kit.send({"user": "ann", **event})
        kit.advance("1 second")
    return kit


def account(kit: RuleTest) -> Account:
    """The account of ann."""
    return kit.why("ann").account


def of(kind: str, **values: Any) -> dict[str, Any]:
    """An event of a kind."""
    return {"kind": kind, **values}


def pair() -> Pattern:
    """An a, then a b."""
    return Pattern.begin("a").where("kind = 'a'").followed_by("b").where("kind = 'b'")


def test_a_match() -> None:
    """Each event says which partial match it began, advanced, or left as it was."""
    found = account(sent(pair(), of("a"), of("x"), of("b")))
    begin, passed, end = found.moments
    assert begin.started == (("a", 1),)
    assert begin.event is not None
    assert (begin.event.number, begin.event.values) == (1, {"kind": "a"})
    (turn,) = passed.turns
    assert (turn.partial, turn.held, turn.took, turn.stays) == (1, {"a": 1}, (), True)
    assert turn.passed == (Passed("b", (Unmet("kind = 'b'", {"kind": "x"}),)),)
    assert passed.state is EventState.PASSED
    (turn,) = end.turns
    assert turn.took == (("b", 1),)
    assert end.matches == tuple(found.matches)
    ending = found.partials[1].ending
    assert ending is not None
    assert (ending.reason, ending.result) == (EndReason.MATCH, found.matches[0])
    assert [each.number for each in found.partials[1].steps["b"]] == [3]


def test_parts_of_a_condition() -> None:
    """Of AND the untrue parts are named, of OR all, with what looks back and its value."""
    pattern = (
        Pattern.begin("a")
        .where("kind = 'a'")
        .times_or_more(1)
        .followed_by("b")
        .where("kind = 'b' AND (n > 5 OR m IS NOT NULL) AND n > 2 * COUNT(a.*) + LAST(a.n)")
    )
    kit = sent(pattern, of("a", n=1), of("a", n=2), of("b", n=3), of("b", n=4, m=1))
    found = account(kit)

    def passed_by_events(moment: Moment) -> dict[tuple[int, ...], tuple[Unmet, ...]]:
        return {
            tuple(each.number for each in found.partials[turn.partial].steps["a"]): each.unmet
            for turn in moment.turns
            for each in turn.passed
            if each.step == "b"
        }

    def looking_back(n: int, count: int, last: int) -> Unmet:
        values = {"n": n, "COUNT(a.*)": count, "LAST(a.n)": last}
        return Unmet("n > 2 * COUNT(a.*) + LAST(a.n)", values)

    neither = (Unmet("n > 5", {"n": 3}), Unmet("m IS NOT NULL", {"m": None}))
    assert passed_by_events(found.moments[2]) == {
        (1,): (*neither, looking_back(3, 1, 1)),
        (1, 2): (*neither, looking_back(3, 2, 2)),
        (2,): (*neither, looking_back(3, 1, 2)),
    }
    # One part of OR is enough; and one of the three has matched.
    assert passed_by_events(found.moments[3]) == {
        (1, 2): (looking_back(4, 2, 2),),
        (2,): (looking_back(4, 1, 2),),
    }
    assert len(found.matches) == 1


def test_parts_within_or() -> None:
    """Of an OR that is true, within what is not, no part stands in the way."""
    where = "kind = 'b' AND (n > 100 OR (m IS NOT NULL OR k IS NOT NULL) AND n > LAST(a.n))"
    pattern = Pattern.begin("a").where("kind = 'a'").followed_by("b").where(where)
    (turn,) = account(sent(pattern, of("a", n=5), of("b", n=4, m=1))).moments[-1].turns
    (passed,) = turn.passed
    assert passed.unmet == (
        Unmet("n > 100", {"n": 4}),
        Unmet("n > LAST(a.n)", {"n": 4, "LAST(a.n)": 5}),
    )


def reasons(kit: RuleTest) -> list[tuple[EndReason, str]]:
    """The ends of partial matches."""
    ended = [each.ending for each in account(kit).partials.values()]
    return [(each.reason, each.detail) for each in ended if each is not None]


def test_the_window() -> None:
    """A deadline without event; the timeout that it gave is named."""
    kit = sent(pair().within("10 seconds"), of("a"))
    kit.advance("1 minute")
    assert reasons(kit) == [
        (EndReason.WINDOW, "the window of 10 seconds from its first event is over")
    ]
    ending = account(kit).partials[1].ending
    assert ending is not None
    assert ending.result == kit.timeouts[0].match_id


def test_the_gap() -> None:
    """No event for so long."""
    kit = sent(pair().within(gap="3 seconds"), of("a"))
    kit.advance("1 minute")
    assert reasons(kit) == [(EndReason.GAP, "no event was taken for 3 seconds")]


def test_an_event_of_a_not_step() -> None:
    """The NOT step, the condition that was true, and the event."""
    pattern = (
        Pattern.begin("a")
        .where("kind = 'a'")
        .not_followed_by("no")
        .where("kind = 'n' AND n > 1")
        .followed_by("b")
        .where("kind = 'b'")
        .within("1 minute")
    )
    kit = sent(pattern, of("a"), of("n", n=1), of("n", n=2))
    ending = account(kit).partials[1].ending
    assert ending is not None
    assert (ending.reason, ending.step) == (EndReason.NOT, "no")
    assert ending.event == kit.sent[2].at
    (held,) = ending.conditions
    assert held.values == {"kind": "n", "n": 2}


def test_contiguity() -> None:
    """Another event came where the next one had to be the step's."""
    pattern = Pattern.begin("a").where("kind = 'a'").next("b").where("kind = 'b'")
    kit = sent(pattern, of("a"), of("x"))
    assert [reason for reason, _ in reasons(kit)] == [EndReason.CONTIGUITY]
    (turn,) = account(kit).moments[-1].turns
    assert turn.passed == (Passed("b", (Unmet("kind = 'b'", {"kind": "x"}),)),)


def test_until() -> None:
    """The until of a loop."""
    pattern = (
        Pattern.begin("a").where("kind = 'a'").times_or_more(2).until("kind = 'u'").within("1 hour")
    )
    kit = sent(pattern, of("a"), of("u"))
    ((reason, detail),) = reasons(kit)
    assert (reason, detail) == (EndReason.UNTIL, "the until of a is true")


def test_the_skip_strategy() -> None:
    """What a match skips names the match."""
    kit = sent(pair().skip_past_last_event(), of("a"), of("a"), of("b"))
    found = account(kit)
    (match,) = found.matches
    ending = found.partials[2].ending
    assert ending is not None
    assert ending.reason is EndReason.SKIP
    assert match in ending.detail


def test_a_limit() -> None:
    """A limit says what it has dropped."""
    limits = {"partial_matches": 1, "on_limit": "drop_oldest"}
    kit = sent(pair(), of("a"), of("a"), limits=limits)
    ((reason, detail),) = reasons(kit)
    assert reason is EndReason.LIMIT
    assert "drop_oldest dropped 1 partial matches" in detail


def test_a_limit_before_a_skip() -> None:
    """What the limit of matches has dropped, the match that was emitted cannot skip."""
    pattern = (
        Pattern.begin("a")
        .where("kind = 'a'")
        .next("r")
        .where("kind = 'a'")
        .optional()
        .skip_to_first("a")
    )
    limits = {"matches": 1, "on_limit": "drop_oldest"}
    kit = sent(pattern, of("a"), of("a"), limits=limits)
    ((reason, detail),) = reasons(kit)
    assert reason is EndReason.LIMIT
    assert "drop_oldest dropped 1" in detail


def test_a_cooldown() -> None:
    """A match within the cooldown is not emitted."""
    kit = sent(pair(), of("a"), of("b"), of("a"), of("b"), cooldown="1 minute")
    assert len(kit.matches) == 1
    assert [reason for reason, _ in reasons(kit)] == [EndReason.MATCH, EndReason.COOLDOWN]
    *_, takes, ends = account_text(account(kit)).splitlines()
    assert takes == "    2 (a) takes it as b"
    assert ends.startswith("        2 ends, cooldown: complete, less than the cooldown of 1 minute")


def test_absence() -> None:
    """What must not come has not come; and the wait for that."""
    pattern = (
        Pattern.begin("a").where("kind = 'a'").not_followed_by("b").where("kind = 'b'")
    ).within("10 seconds")
    kit = sent(pattern, of("a"))
    (waiting,) = account(kit).open
    assert (waiting.absence, waiting.forbids) == (True, ("b",))
    kit.advance("1 minute")
    assert reasons(kit) == [(EndReason.MATCH, "complete: what must not come has not come")]


def test_late_and_waiting_events() -> None:
    """Events that no rule has seen."""
    kit = sent(pair(), of("a"))
    kit.send(of("b", user="ann"), at="-10 seconds")
    kit.send(of("b", user="ann"), at="+10 seconds")
    kit.advance("1 second")
    states = [moment.state for moment in account(kit).moments]
    assert states == [EventState.TAKEN, EventState.LATE, EventState.WAITING]
    assert "late: the watermark had passed its time" in repr(kit.why("ann"))


def test_before_effective_from() -> None:
    """Events before the rule begins."""
    rule = pair().rule("r", key="user", effective_from="2026-01-01T00:00:01Z")
    states = [moment.state for moment in account(fed(rule, of("a"), of("a"))).moments]
    assert states == [EventState.TOO_EARLY, EventState.TAKEN]


def test_a_rule_that_never_begins() -> None:
    """What never held, and the values that were there."""
    kit = sent(pair(), of("A"), of("x"))
    found = account(kit)
    (condition,) = found.starts.conditions
    assert (condition.step, condition.text, condition.true_of) == ("a", "kind = 'a'", 0)
    assert condition.values == [{"kind": "A"}, {"kind": "x"}]
    text = repr(kit.why("ann"))
    assert "The rule never began." in text
    assert "a: kind = 'a' was true of 0 of 2 events; seen: kind 'A' | kind 'x'" in text


def test_a_type_that_never_came() -> None:
    """A record type that was never there."""
    pattern = Pattern.begin("a").of_type("Order").where("n > 1")
    kit = RuleTest(pattern.rule("r", key="user"))
    kit.send(user="ann", n=2, of_type="Payment")
    kit.advance("1 second")
    found = account(kit)
    assert found.starts.missing_types == ("Order",)
    assert "no record of type Order was there; seen: Payment" in repr(kit.why("ann"))
    (passed,) = found.moments[0].not_started
    assert passed.unmet == (Unmet("type is Order", {"type": "Payment"}),)


def test_a_key_that_is_not_there() -> None:
    """Keys like it, and events without a key."""
    kit = sent(pair(), of("a"))
    kit.send(of("a"))
    kit.advance("1 second")
    starts = kit.why("anne").account.starts
    assert (starts.events, starts.without_key, starts.keys_like) == (0, 1, ("ann",))
    text = repr(kit.why("anne"))
    assert "keys that were seen: 'ann'" in text
    assert "The rule has seen no event of this key; 2 records of its inputs were read." in text
    assert "1 of them has no key: it is NULL" in text


def test_the_nearest() -> None:
    """How near it came."""
    kit = sent(pair().within("2 seconds"), of("a"))
    kit.advance("1 minute")
    assert "Nothing matched. 1 came nearest: it took a 1, and ended, window:" in repr(
        kit.why("ann")
    )


def test_as_json() -> None:
    """The account is plain data."""
    kit = sent(pair().within("10 seconds"), of("a"), of("x"), of("b"), of("a"))
    data = json.loads(json.dumps(kit.why("ann").data()))
    assert data["matches"] == [kit.matches[0].match_id]
    assert data["moments"][1]["turns"][0]["passed"] == [
        {
            "step": "b",
            "unmet": [{"condition": "kind = 'b'", "true": False, "values": {"kind": "x"}}],
        }
    ]
    assert data["partial_matches"][1]["waits_for"] == ["b"]


#: By reason: the fields of the rule, and ann's events.
ENDS: dict[str, tuple[Pattern, dict[str, Any], list[dict[str, Any]]]] = {
    "window": (pair().within("2 seconds"), {}, [of("a")]),
    "gap": (pair().within(gap="2 seconds"), {}, [of("a")]),
    "not": (
        Pattern.begin("a")
        .where("kind = 'a'")
        .not_followed_by("no")
        .where("kind = 'n'")
        .followed_by("b")
        .where("kind = 'b'"),
        {},
        [of("a"), of("n")],
    ),
    "contiguity": (
        Pattern.begin("a").where("kind = 'a'").next("b").where("kind = 'b'"),
        {},
        [of("a"), of("x")],
    ),
    "until": (
        Pattern.begin("a")
        .where("kind = 'a'")
        .times_or_more(2)
        .until("kind = 'u'")
        .within("1 hour"),
        {},
        [of("a"), of("u")],
    ),
    "skip": (pair().skip_past_last_event(), {}, [of("a"), of("a"), of("b")]),
    "limit": (
        pair(),
        {"limits": {"partial_matches": 1, "on_limit": "drop_oldest"}},
        [of("a"), of("a")],
    ),
    "cooldown": (pair(), {"cooldown": "1 minute"}, [of("a"), of("b"), of("a"), of("b")]),
}


@pytest.mark.parametrize("reason", ENDS)
def test_the_kit_explains_ends(reason: str) -> None:
    """``explain`` names the reason of a partial match's end, also behind a restart."""
    pattern, fields, events = ENDS[reason]
    kit = sent(pattern, *events, **fields)
    kit.restart()
    kit.advance("1 minute")
    said = f" ends, {reason.replace('_', ' ')}: "
    assert any(said in line for line in account_text(account(kit)).splitlines())
    (line,) = [each for each in kit.explain().splitlines() if each.startswith("ended: ")]
    assert line.startswith("ended: r, key 'ann': a 1")
    assert f", {reason}: " in line


def test_every_reason_is_explained() -> None:
    """Those of rules of steps, beside a match and another version (:mod:`tests.why`)."""
    others = {EndReason.MATCH, EndReason.PREFERRED, EndReason.REPLACED}
    assert {*ENDS} == {reason.value for reason in EndReason if reason not in others}


def test_the_kit_explains_lateness() -> None:
    """``explain`` says which events came late."""
    kit = sent(pair(), of("a"))
    kit.send(of("b", user="ann"), at="-10 seconds")
    kit.advance("1 second")
    assert "<#1 2025-12-31T23:59:51Z kind='b', user='ann'>: late" in kit.explain()


def test_an_event_that_changes_nothing() -> None:
    """It says so, where no step waits for anything."""
    pattern = Pattern.begin("a").where("kind = 'a'").not_followed_by("b").where("kind = 'b'")
    kit = sent(pattern.within("1 minute"), of("a"), of("x"))
    assert "event 2 (events/0/1): kind 'x'\n    changes nothing\n" in repr(kit.why("ann"))


def test_a_step_that_must_not_hold() -> None:
    """The until of a loop keeps its step from taking an event."""
    pattern = (
        Pattern.begin("f")
        .where("kind IN ('f', 'u')")
        .times_or_more(1)
        .until("kind = 'u'")
        .followed_by("b")
        .where("kind = 'b'")
    )
    text = repr(sent(pattern, of("f"), of("u")).why("ann"))
    assert "        f: kind = 'u' must not be true, and is: kind is 'u'" in text


def test_a_branch() -> None:
    """A partial match that parts says which number goes on."""
    pattern = (
        Pattern.begin("a").where("kind = 'a'").times_or_more(1).followed_by("b").where("kind = 'b'")
    )
    text = repr(sent(pattern, of("a"), of("a")).why("ann"))
    assert "    1 (a) takes it as a; 2 goes on with it\n" in text


def test_with_and_without_a_key() -> None:
    """A key is given where the rule has one, and only there."""
    kit = RuleTest([pair().rule("keyed", key="user"), pair().rule("whole")])
    with pytest.raises(ValueError, match="rule keyed has a key: say which"):
        kit.why(rule="keyed")
    with pytest.raises(ValueError, match="rule whole has no key: leave it out"):
        kit.why("ann", rule="whole")
    assert kit.why(rule="whole").account.key is None


def test_which_rule() -> None:
    """Of several rules one is named."""
    kit = RuleTest([pair().rule("one", key="user"), pair().rule("two", key="user")])
    with pytest.raises(ValueError, match="say which rule: one, two"):
        kit.why("ann")
    assert kit.why("ann", rule="two").account.rule_id == "two"


def test_dead_letters_have_their_places() -> None:
    """Each is told with the place of its record."""
    pattern, fields, events = ENDS["limit"]
    found = account(sent(pattern, *events, **fields))
    assert [each.partition(": ")[0] for each in found.failures] == ["events/0/1"]
    assert f"  {found.failures[0]}" in account_text(found).splitlines()
