"""The test kit: what is sent, what time it is, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep import Pattern, to_yaml
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.errors import RuleSetError, SchemaError
from spark_cep.matcher.findings.live import live_partials
from spark_cep.model import Coordinates
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.tree import Rule
from spark_cep.testkit import RuleTest
from tests.matcher.strategies import arrivals, keyed_streams, rules
from tests.reference.job import ReferenceJob
from tests.reference.local import LocalJob, Record
from tests.runner.job import RunnerJob

START = datetime(2026, 1, 1, tzinfo=UTC)
FAIL, OK = {"event_type": "login_fail"}, {"event_type": "login_ok"}

LOGIN = {
    "type": "record",
    "name": "Login",
    "namespace": "com.acme",
    "fields": [
        {"name": "user_id", "type": "string"},
        {"name": "event_type", "type": "string"},
        {"name": "attempts", "type": "int"},
    ],
}
LOGOUT = {
    "type": "record",
    "name": "com.acme.Logout",
    "fields": [{"name": "user_id", "type": "string"}],
}


def failures(times: int = 2) -> Pattern:
    """Failed log-ins, then one that succeeds, within ten minutes."""
    return (
        Pattern.begin("fail")
        .where("event_type = 'login_fail'")
        .times(times)
        .followed_by("ok")
        .where("event_type = 'login_ok'")
        .within("10 minutes")
    )


def rule(pattern: Pattern | None = None, rule_id: str = "logins", **fields: Any) -> Rule:
    """The pattern as a rule by user."""
    return (pattern or failures()).rule(rule_id, key="user_id", **fields)


def seconds(count: float) -> datetime:
    """So many seconds after the start."""
    return START + timedelta(seconds=count)


def test_a_match_gives_back_what_was_sent() -> None:
    """Steps hold the events that were sent, with their times; measures are computed."""
    kit = RuleTest(rule(measures={"n": "COUNT(fail.*)", "ip": "LAST(ok.ip)"}))
    first = kit.send(FAIL, user_id="ann", at="+1 second")
    kit.send(FAIL, user_id="bob", at="+2 seconds")
    kit.send({**FAIL, "user_id": "ann", "note": "x"}, at="+3 seconds")
    kit.send(OK, user_id="ann", ip="10.0.0.1", at="+4 seconds")
    assert kit.matches == []
    kit.advance("5 seconds")
    (match,) = kit.matches
    assert (match.rule_id, match.rule_version, match.key) == ("logins", 1, "ann")
    assert (match.start, match.time) == (seconds(1), seconds(4))
    assert match.steps["fail"][0] is first
    assert match.events("fail") == [
        {**FAIL, "user_id": "ann"},
        {**FAIL, "user_id": "ann", "note": "x"},
    ]
    assert [event["event_type"] for event in match.events()] == ["login_fail"] * 2 + ["login_ok"]
    assert match.measures == {"n": 2, "ip": "10.0.0.1"}
    assert len(match.match_id) == 32
    assert repr(match).startswith("<match of logins, key 'ann' at 2026-01-01T00:00:04Z: fail <#0 ")
    assert [each.key for each in kit.partial_matches] == ["ann", "bob"]
    assert len(kit.sent) == 4


def test_unknown_steps_are_refused() -> None:
    """A misspelt step is an error, not a step without events."""
    kit = RuleTest(rule(Pattern.begin("a").where("x = 1").optional().followed_by("b")))
    kit.send(user_id="ann")
    kit.finish()
    (match,) = kit.matches
    assert match.events("a") == []
    with pytest.raises(ValueError, match="rule logins takes no events for 'c': it has a, b"):
        match.events("c")


def test_the_watermark_follows_the_clock() -> None:
    """It is the allowed disorder and a millisecond behind; events at the clock are never late."""
    kit = RuleTest(rule(), allowed_disorder="5 seconds")
    assert (kit.now, kit.watermark_time) == (START, seconds(-5.001))
    kit.send(FAIL, user_id="ann")
    kit.advance(timedelta(seconds=5))
    assert (kit.now, kit.watermark_time) == (seconds(5), seconds(-0.001))
    assert [event.time for event in kit.waiting] == [START]
    assert kit.partial_matches == []
    kit.advance_to(seconds(6))
    assert kit.waiting == []
    assert len(kit.partial_matches) == 1
    kit.send(FAIL, user_id="ann", at="-4999 ms")
    assert kit.late == []
    late = kit.send(FAIL, user_id="ann", at="-5001 ms")
    (arrival,) = kit.late
    assert arrival.event is late
    assert arrival.watermark == seconds(0.999)
    assert kit.waiting == [kit.sent[1]]


@pytest.mark.parametrize(
    ("condition", "sent", "told"),
    [
        ("ts > TIMESTAMP '2026-01-01 00:00:00'", {"ts": "2026-01-02T00:00:00Z"},
         "ts='2026-01-02T00:00:00Z' is STRING"),
        ("ABS(amount) > 5", {"amount": "7"}, "amount='7' is STRING"),
        ("amount >= 100", {"amount": "100"}, "amount='100' is STRING"),
    ],
)  # fmt: skip
def test_text_where_a_rule_computes(condition: str, sent: dict[str, str], told: str) -> None:
    """Times and amounts that are sent as text are told by column, value and type, with what to
    send; the condition is the one that cannot compute, once however many events are sent."""
    kit = RuleTest(rule(Pattern.begin("a").where(condition)))
    for _ in range(2):
        kit.send(sent, user_id="ann")
    (warning,) = kit.warnings
    assert (warning.rule, warning.step) == ("logins", "a")
    assert warning.message.startswith(f"{condition}: ")
    assert warning.message.endswith(told)
    assert warning.allowed == (
        "send a number as int, float or Decimal, a time as datetime, a text as str; or CAST the"
        " column"
    )
    right = RuleTest(rule(Pattern.begin("a").where(condition)))
    right.send(ts=seconds(86_401), amount=100, user_id="ann")
    right.finish()
    assert (len(right.warnings), len(right.matches)) == (0, 1)


def test_a_watermark_by_hand() -> None:
    """Without an allowed disorder only the test moves the watermark; it never goes back."""
    kit = RuleTest(rule(), allowed_disorder=None)
    kit.send(FAIL, user_id="ann", at="-5 ms")
    kit.send(FAIL, user_id="ann", at="-1 day")
    kit.send(OK, user_id="ann")
    kit.advance("1 hour")
    assert kit.matches == []
    kit.watermark("-1 hour")
    assert [len(each.events()) for each in kit.timeouts] == [1]
    kit.watermark("-1 hour")
    with pytest.raises(ValueError, match="is before the watermark 2026-01-01T00:00:00Z"):
        kit.watermark("-61 minutes")
    kit.send(OK, user_id="ann", at=START)
    assert len(kit.late) == 1


def test_events_of_one_millisecond() -> None:
    """They are applied in the order of their microseconds, as in the job."""
    kit = RuleTest(rule(failures(1)))
    kit.send(OK, user_id="ann", at=START + timedelta(microseconds=300))
    kit.send(FAIL, user_id="ann", at=START + timedelta(microseconds=200))
    kit.advance("1 hour")
    assert len(kit.matches) == 1


def test_the_watermark_may_go_ahead_of_the_clock() -> None:
    """Moved by hand it stays until the clock has come as far."""
    kit = RuleTest(rule())
    kit.watermark("+1 minute")
    kit.advance("10 seconds")
    assert kit.watermark_time == seconds(60)
    kit.send(FAIL, user_id="ann")
    assert len(kit.late) == 1
    kit.advance("1 hour")
    assert kit.watermark_time == kit.now - timedelta(milliseconds=1)


def test_timeouts_of_idle_keys() -> None:
    """A deadline needs no further event of its key."""
    kit = RuleTest(rule())
    kit.send(FAIL, user_id="ann", at="+1 second")
    kit.advance("10 minutes")
    kit.send(FAIL, user_id="bob")
    kit.advance("1 second")
    assert kit.timeouts == []
    kit.advance("1 ms")
    (timeout,) = kit.timeouts
    assert (timeout.key, timeout.deadline) == ("ann", seconds(601))
    assert timeout.events("fail") == [{**FAIL, "user_id": "ann"}]
    assert not timeout.already_matched
    assert timeout.start == seconds(1)
    kit.finish()
    assert [each.key for each in kit.timeouts] == ["ann", "bob"]
    kit.send(FAIL, user_id="eve", at="+1 day")
    assert len(kit.late) == 1


def test_partial_matches() -> None:
    """They name the events taken, the deadline, and what they wait for."""
    pattern = (
        (Pattern.begin("a").where("n = 'a'").one_or_more().next("b").where("n = 'b'").optional())
        .followed_by("c")
        .where("n = 'c'")
        .within("1 minute")
    )
    kit = RuleTest(rule(pattern))
    for name in "aab":
        kit.send(user_id="ann", n=name)
        kit.advance("1 second")
    found = {"".join(e["n"] for e in each.events()): each for each in kit.partial_matches}
    assert sorted(found) == ["a", "aa", "aab", "ab"]
    both = found["aa"]
    assert (both.rule_id, both.key, both.start) == ("logins", "ann", START)
    assert both.waits_for == ("a", "c")
    assert both.deadline == seconds(60)
    assert (both.forbids, both.absence, both.already_matched) == ((), False, False)
    assert found["aab"].waits_for == ("c",)
    assert "waits for a or c, until 2026-01-01T00:01:00Z" in repr(both)


def test_absence() -> None:
    """What must not come is named, and the match is made at the deadline."""
    pattern = Pattern.begin("order").where("n = 'o'").not_followed_by("paid").where("n = 'p'")
    kit = RuleTest(rule(pattern.within("1 minute")))
    kit.send(user_id="ann", n="o")
    kit.advance("1 second")
    (partial,) = kit.partial_matches
    assert (partial.waits_for, partial.forbids, partial.absence) == ((), ("paid",), True)
    assert "not for paid, matches at 2026-01-01T00:01:00Z" in repr(partial)
    kit.advance("1 minute")
    assert [match.time for match in kit.matches] == [seconds(60)]
    assert kit.partial_matches == []


def test_a_rule_without_window_has_no_deadline() -> None:
    """Its partial matches live for ever."""
    kit = RuleTest(rule(Pattern.begin("a").followed_by("b").where("n = 'b'")))
    kit.send(user_id="ann")
    kit.finish()
    (partial,) = kit.partial_matches
    assert partial.deadline is None
    assert repr(partial).startswith("<partial match of logins, key 'ann', waits for b: a <#0 ")


def test_what_can_never_be_taken_is_not_waited_for() -> None:
    """A greedy loop over every event leaves none for the step behind it."""
    kit = RuleTest(rule(Pattern.begin("a").one_or_more().greedy().followed_by("b")))
    kit.send(user_id="ann")
    kit.advance("1 second")
    assert [partial.waits_for for partial in kit.partial_matches] == [("a",)]


def test_held_matches() -> None:
    """A match that the skip strategy holds back is listed apart."""
    pattern = (
        (Pattern.begin("a").where("n = 'a'").followed_by("b").where("n = 'b' AND v > LAST(a.v)"))
        .within("1 minute")
        .skip_past_last_event()
    )
    kit = RuleTest(rule(pattern))
    kit.send(user_id="ann", n="a", v=5)
    kit.send(user_id="ann", n="a", v=1)
    kit.send(user_id="ann", n="b", v=2)
    kit.advance("1 second")
    (held,) = kit.held_matches
    assert [event["v"] for event in held.events()] == [1, 2]
    assert repr(held).startswith("<held match of logins, key 'ann': a ")
    assert [partial.events("a")[0]["v"] for partial in kit.partial_matches] == [5]
    assert kit.matches == []
    kit.advance("1 minute")
    assert [[event["v"] for event in match.events()] for match in kit.matches] == [[1, 2]]


def test_already_matched() -> None:
    """A partial match, and its timeout, say when their events had been a match."""
    pattern = Pattern.begin("a").where("n = 'a'").followed_by("b").where("n = 'b'").optional()
    kit = RuleTest(rule(pattern.within("1 minute")))
    kit.send(user_id="ann", n="a")
    kit.advance("1 second")
    assert [partial.already_matched for partial in kit.partial_matches] == [True]
    kit.advance("1 minute")
    assert [timeout.already_matched for timeout in kit.timeouts] == [True]


def test_dead_letters() -> None:
    """Events without key and conditions that fail give back the event."""
    kit = RuleTest(rule(Pattern.begin("a").where("price > 1")))
    lost = kit.send(price=3)
    bad = kit.send(user_id="ann", price="much")
    kit.advance("1 second")
    missing, failed = kit.dead_letters
    assert (missing.event, missing.reason, missing.rule_id) == (lost, "missing_key", None)
    assert (failed.event, failed.reason) == (bad, "condition_failed")
    assert (failed.rule_id, failed.step) == ("logins", "a")
    assert "price > 1" in failed.detail
    assert repr(failed).startswith("<condition_failed logins a <#1 ")


@pytest.mark.parametrize("cut", range(6))
def test_a_restart_in_the_middle_changes_nothing(cut: int) -> None:
    """The state through bytes and back, before any of the events."""
    kit = RuleTest(rule(), allowed_disorder="1 second")
    for number, values in enumerate([FAIL, FAIL, OK, FAIL, FAIL]):
        if number == cut:
            kit.restart()
        kit.send(values, user_id="ann")
        kit.advance("1 second")
    if cut == 5:
        kit.restart()
    kit.finish()
    assert [[e["event_type"][6:] for e in m.events()] for m in kit.matches] == [
        ["fail", "fail", "ok"]
    ]
    assert len(kit.timeouts) == 3
    assert kit.late == []


def test_several_rules_and_inputs() -> None:
    """Rules see their inputs; the record type comes with the event."""
    both = (Pattern.begin("order").of_type("Order").followed_by("pay").of_type("Payment")).within(
        "1 minute"
    )
    one = Pattern.begin("any")
    kit = RuleTest(
        [
            rule(both, "both", events=["orders", "payments"]),
            rule(one, "orders-only", events="orders"),
        ]
    )
    kit.send(user_id="ann", input="orders", of_type="Order")
    kit.send(user_id="ann", input="payments", of_type="com.acme.Payment", at="+1 second")
    kit.finish()
    assert sorted(match.rule_id for match in kit.matches) == ["both", "orders-only"]
    assert [rule.id for rule in kit.rules] == ["both", "orders-only"]
    assert {event.input for event in kit.sent} == {"orders", "payments"}
    with pytest.raises(ValueError, match="say which input: orders, payments"):
        kit.send(user_id="ann")
    with pytest.raises(ValueError, match=r"there is no input 'order'; did you mean 'orders'\?"):
        kit.send(user_id="ann", input="order")
    assert len(kit.sent) == 2


def test_the_only_input_needs_no_name() -> None:
    """Events go to the input that the rules name, or to any."""
    named = RuleTest(rule(Pattern.begin("a"), events="in"))
    assert named.send(user_id="ann").input == "in"
    free = RuleTest(rule(Pattern.begin("a")))
    assert free.send(user_id="ann", input="anything").input == "anything"


def test_columns_of_any_name() -> None:
    """Columns that are called like an argument stand in the mapping."""
    kit = RuleTest(Pattern.begin("a").where("at = 1 AND `values` = 2").rule("r"))
    kit.send({"at": 1}, values=2)
    kit.finish()
    assert [match.key for match in kit.matches] == [None]


def test_rules_from_files(tmp_path: Path) -> None:
    """A file or a folder, with the versions and the warnings of the service."""
    (tmp_path / "one.yaml").write_text(to_yaml(rule()) + "---\n" + to_yaml(rule(version=2)))
    for path in (tmp_path, tmp_path / "one.yaml", str(tmp_path)):
        kit = RuleTest(path)
        assert [one.version for one in kit.rules] == [2]
        assert any("gives way" in warning.message for warning in kit.warnings)
    loaded = load_rules(to_yaml(rule()), "text")
    assert RuleTest(loaded).rules == (rule(),)
    assert RuleTest(loaded[0]).rules == (rule(),)
    with pytest.raises(RuleSetError, match="version 1 of this rule is also in <python>"):
        RuleTest([rule(), rule(failures(3))])


def test_rules_are_checked(tmp_path: Path) -> None:
    """A tree made by hand is refused as a text would be, and all problems are said."""
    with pytest.raises(RuleSetError) as caught:
        RuleTest([Rule("r", 0, rule().pattern), Rule("r ", 1, ())])
    assert [problem.rule for problem in caught.value.problems] == ["r", "r "]
    (tmp_path / "bad.yaml").write_text("id: r\npattern: [{stap: a}]\n")
    with pytest.raises(RuleSetError, match=r"bad\.yaml:2:"):
        RuleTest(tmp_path)


def test_a_rule_that_is_not_enabled_does_not_run() -> None:
    """As in the service; the explanation says so."""
    kit = RuleTest(rule(Pattern.begin("a"), enabled=False))
    kit.send(user_id="ann")
    kit.finish()
    assert kit.matches == []
    assert "rule logins version 1, not enabled" in kit.explain()


@pytest.mark.parametrize("as_file", [False, True])
def test_types_are_checked(tmp_path: Path, as_file: bool) -> None:
    """Rules are held against the schema, as by ``spark-cep check --schema``."""
    schema: Any = LOGIN
    if as_file:
        schema = tmp_path / "login.avsc"
        schema.write_text(json.dumps(LOGIN))
    RuleTest(rule(), schema=schema)
    pattern = Pattern.begin("a").where("event_typ = 'x' AND attempts > 'two'")
    with pytest.raises(RuleSetError) as caught:
        RuleTest(rule(pattern), schema=schema)
    first, second = caught.value.problems
    assert "event_typ" in first.message
    assert {(p.source, p.rule, p.step, p.field) for p in (first, second)} == {
        ("<python>", "logins", "a", "where")
    }
    assert "where | event_typ = 'x'" in first.render()


def test_a_column_of_several_types_is_refused() -> None:
    """As by ``spark-cep check`` and the job; with records of one name too."""
    other = {**LOGIN, "fields": [{"name": "attempts", "type": "string"}]}
    often = Pattern.begin("a").where("attempts > 3").rule("often", events=["in", "out"])
    with pytest.raises(RuleSetError, match=r"INT in com\.acme\.Login \(input in\), STRING in com"):
        RuleTest(often, schemas={"in": LOGIN, "out": other})
    RuleTest(often, schemas={"in": LOGIN, "out": LOGIN})


def test_a_symbol_that_an_enum_does_not_have_is_warned_about() -> None:
    """As by ``spark-cep check --schema``."""
    kind = {"type": "enum", "name": "Kind", "symbols": ["SEPA", "SWIFT"]}
    login = {**LOGIN, "fields": [*LOGIN["fields"], {"name": "kind", "type": kind}]}
    kit = RuleTest(rule(Pattern.begin("a").where("kind = 'SWFT'")), schema=login)
    (warning,) = kit.warnings
    assert (warning.step, warning.message) == ("a", "'SWFT' is no symbol of the enum kind")
    assert str(warning.allowed).startswith("did you mean `SWIFT`?")


def test_events_are_checked_against_the_schema() -> None:
    """A column or record type that is not there is a mistake of the test."""
    kit = RuleTest(rule(), schema=LOGIN)
    assert kit.send(user_id="ann").of_type == "com.acme.Login"
    with pytest.raises(ValueError, match=r"no column 'event_typ'; did you mean 'event_type'\?"):
        kit.send(user_id="ann", event_typ="x")
    with pytest.raises(ValueError, match="no one record type 'Logon'; did you mean"):
        kit.send(user_id="ann", of_type="Logon")
    union = RuleTest(rule(Pattern.begin("a").of_type("Logout")), schema=[LOGIN, LOGOUT])
    assert union.send(user_id="ann", of_type="Logout").of_type == "com.acme.Logout"
    with pytest.raises(
        ValueError, match=r"say which record type, with `of_type`: com\.acme\.Login,"
    ):
        union.send(user_id="ann")
    union.finish()
    assert len(union.matches) == 1


_PLACE = {
    "type": "record",
    "name": "Place",
    "fields": [
        {"name": "crane", "type": ["null", "string"]},
        {"name": "kind", "type": "string"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
_IN_SQL = """
id: places
sql: |
  SELECT * FROM places MATCH_RECOGNIZE (
    PARTITION BY kind ORDER BY ts MEASURES LAST(a.crane) AS crane
    PATTERN (a) DEFINE a AS {where})
"""


@pytest.mark.parametrize("sql", [False, True], ids=["steps", "SQL"])
@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("crane LIKE 'C%'", ["C1", "C2x"]),
        ("crane LIKE '%x'", ["C2x", "x"]),
        ("crane LIKE '%2%'", ["C2x"]),
        ("crane LIKE 'C_'", ["C1"]),
        ("NOT crane LIKE 'C%'", ["x"]),
        ("STARTSWITH(crane, 'C')", ["C1", "C2x"]),
        ("ENDSWITH(crane, 'x')", ["C2x", "x"]),
        ("CONTAINS(crane, '2')", ["C2x"]),
        ("kind = 'k' AND (crane LIKE 'C1%' OR crane = 'x')", ["C1", "x"]),
    ],
)
def test_parts_of_texts_are_compared_with_and_without_a_schema(
    where: str, found: list[str], sql: bool
) -> None:
    """A column whose type nobody has said may hold texts, too."""
    pattern = Pattern.begin("a").where(where).rule("places", key="kind")
    tested = load_rules(_IN_SQL.format(where=where), "places")[0].rule if sql else pattern
    for schema in (None, _PLACE):
        kit = RuleTest(tested, schema=schema)
        for crane in ("C1", "C2x", "x", None):
            kit.send(kind="k", crane=crane)
        kit.finish()
        assert [match.events()[0]["crane"] for match in kit.matches] == found


def test_a_key_over_columns_of_several_types() -> None:
    """Events of two record types meet by columns that only one of them has each."""
    call = {"type": "record", "name": "Call", "fields": [{"name": "caller", "type": "string"}]}
    sms = {"type": "record", "name": "Sms", "fields": [{"name": "sender", "type": "string"}]}
    pattern = Pattern.begin("a").of_type("Call").followed_by("b").of_type("Sms")
    kit = RuleTest(pattern.rule("r", key="COALESCE(caller, sender)"), schema=[call, sms])
    kit.send(caller="ann", of_type="Call")
    kit.send(sender="bob", of_type="Sms", at="+1 second")
    kit.send(sender="ann", of_type="Sms", at="+2 seconds")
    kit.finish()
    assert [match.key for match in kit.matches] == ["ann"]


def test_schemas_by_input() -> None:
    """With several inputs each has its own schema, and rules say which they read."""
    schemas = {"in": LOGIN, "out": LOGOUT}
    logout = rule(Pattern.begin("a").where("user_id = 'ann'"), events="out")
    kit = RuleTest(logout, schemas=schemas)
    kit.send(user_id="ann", input="out")
    kit.send(user_id="ann", attempts=3, input="in")
    kit.finish()
    assert len(kit.matches) == 1
    with pytest.raises(ValueError, match="has no column 'attempts'"):
        kit.send(user_id="ann", attempts=3, input="out")
    with pytest.raises(RuleSetError, match="no schema of the input `off`"):
        RuleTest(rule(events=["in", "off"]), schemas=schemas)
    with pytest.raises(RuleSetError, match="does not say which input it reads"):
        RuleTest(rule(), schemas=schemas)
    with pytest.raises(ValueError, match="not both"):
        RuleTest(logout, schema=LOGIN, schemas=schemas)
    with pytest.raises(SchemaError, match="the test's schema"):
        RuleTest(logout, schema={"type": "record"})


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("+1 second", seconds(11)),
        ("-1 second", seconds(9)),
        (" + 1 minute", seconds(70)),
        (timedelta(seconds=-3), seconds(7)),
        ("2026-01-01T00:00:03Z", seconds(3)),
        ("2026-01-01T01:00:03.250+01:00", seconds(3.25)),
        ("2026-01-01", START),
        (datetime(2026, 1, 1, 0, 0, 4), seconds(4)),
        (START, START),
        (1_767_225_600_001, seconds(0.001)),
        (1 << 62, datetime.max.replace(tzinfo=UTC)),
        (-(1 << 62), datetime.min.replace(tzinfo=UTC)),
    ],
)
def test_instants(at: Any, expected: datetime) -> None:
    """From the clock with a sign, otherwise absolute."""
    kit = RuleTest(rule())
    kit.advance("10 seconds")
    assert kit.time(at) == expected


@pytest.mark.parametrize("at", ["1 second", "soon", "+soon", True, 1.5, None])
def test_what_is_no_instant(at: Any) -> None:
    """The message says what is."""
    with pytest.raises(ValueError, match=r"is not an? (instant|duration): allowed is|allowed are"):
        RuleTest(rule()).time(at)


def test_what_is_not_a_rule_is_refused() -> None:
    """A pattern without its rule is the commonest, so the way out is said."""
    pattern = Pattern.begin("a")
    for given_rules in (pattern, [pattern]):
        with pytest.raises(TypeError, match=r"found a Pattern; end it with \.rule\(id, …\)"):
            RuleTest(given_rules)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"end it with \.rule\(id, …\)"):
        to_yaml(pattern)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"a Rule is expected, found a NoneType$"):
        RuleTest(None)  # type: ignore[arg-type]


def test_clocks_go_forward() -> None:
    """Neither clock nor durations are negative, and durations have units."""
    kit = RuleTest(rule())
    with pytest.raises(ValueError, match="before the clock's 2026-01-01T00:00:00Z"):
        kit.advance_to("-1 ms")
    with pytest.raises(ValueError, match="is not a duration"):
        kit.advance("-1 second")
    with pytest.raises(TypeError, match="is not a duration"):
        kit.advance(5)  # type: ignore[arg-type]


def test_explanation() -> None:
    """Everything is in it; the one-line form has the counts."""
    kit = RuleTest(rule(), allowed_disorder="1 second")
    kit.send(FAIL, user_id="ann")
    kit.send(user_id="ann", event_type="other")
    kit.advance("1 minute")
    kit.send(OK, user_id="ann")
    kit.send(OK, user_id="ann", at="-1 minute")
    line = repr(kit)
    assert "4 sent, 1 waiting, 1 late, 0 matches, 0 timeouts, 1 partial" in line
    assert len(line) < 240
    text = kit.explain()
    for part in (
        "#0 2026-01-01T00:00:00Z event_type='login_fail', user_id='ann'>: taken",
        "#1 2026-01-01T00:00:00Z user_id='ann', event_type='other'>: in no match, timeout or",
        ">: waits for the watermark",
        ">: late",
        "matches: none",
        "<partial match of logins, key 'ann', waits for fail, until 2026-01-01T00:10:00Z: fail <#0",
    ):
        assert part in text
    kit.finish()
    assert "<timeout of logins, key 'ann' at 2026-01-01T00:10:00Z: fail <#0" in kit.explain()
    assert repr(kit.late[0]).startswith("<late <#3 ")
    for _ in range(100):
        kit.send(OK, user_id="ann")
    assert "  … 4 earlier ones" in kit.explain()
    assert "rules: none" in RuleTest([]).explain()


def _by_key(found: Sequence[Any]) -> list[str]:
    """Ids in order; keys have none among themselves."""
    return [each.match_id for each in sorted(found, key=lambda one: one.key or "")]


@given(rules(), st.data())
@settings(max_examples=60)
@pytest.mark.slow
def test_answers_are_those_of_the_job(rule: Rule, data: st.DataObject) -> None:
    """Any rule and stream: the kit finds what the job finds, restarted or not."""
    records: list[Record] = data.draw(keyed_streams())
    arriving = data.draw(arrivals(records))
    # The kit gives offsets in the order of arrival.
    placed = [
        Record(Coordinates("events", 0, number), record.time, record.values)
        for number, record in enumerate(arriving)
    ]
    job = LocalJob(compile_rules([rule]))
    kit = RuleTest(rule, allowed_disorder=None)
    for record in placed:
        watermark = max(job.watermark, record.time - data.draw(st.integers(0, 4)))
        job.advance([record], watermark)
        kit.send(record.values, at=record.time)
        if data.draw(st.booleans()):
            kit.restart()
        kit.watermark(watermark)
        assert len(list(job.partial_matches())) == len(kit.partial_matches + kit.held_matches)
    job.advance([], 1 << 60)
    kit.finish()
    matches = {match.match_id: match for match in kit.matches}
    assert _by_key(job.outputs.matches) == _by_key(kit.matches)
    for match in job.outputs.matches:
        found = matches[match.match_id].steps
        assert {n: [e.at for e in events] for n, events in match.steps.items()} == {
            n: [e.at for e in events] for n, events in found.items()
        }
    ends = {each.match_id: each.already_matched for each in kit.timeouts}
    assert _by_key(job.outputs.timeouts) == _by_key(kit.timeouts)
    assert {each.match_id: each.already_matched for each in job.outputs.timeouts} == ends
    assert [each.event.at for each in kit.late] == [each.at for each in job.late]


@given(rules(), st.data())
@settings(max_examples=30)
def test_partial_matches_are_those_of_the_reference(rule: Rule, data: st.DataObject) -> None:
    """The matcher names the partial matches that the reference has."""
    records: list[Record] = data.draw(keyed_streams())
    job, reference = RunnerJob(compile_rules([rule])), ReferenceJob(compile_rules([rule]))
    for record in records:
        job.advance([record], record.time - 1)
        reference.advance([record], record.time - 1)
        expected = [
            partial
            for key, plan, state in reference.rule_states()
            for partial in live_partials(plan, key, state)
        ]
        assert sorted(map(repr, job.partial_matches())) == sorted(map(repr, expected))


_OF_KAFKA = """
id: run
sql: |
  SELECT * FROM clicks MATCH_RECOGNIZE (
    PARTITION BY _kafka.key ORDER BY ts
    MEASURES FIRST(a._kafka.offset) AS first, LAST(b._kafka.topic) AS topic,
      LAST(b._kafka.timestamp) AS at
    PATTERN (a b) DEFINE a AS a.n = 1, b AS b._kafka.offset = PREV(b._kafka.offset) + 1)
"""


def test_columns_of_kafka_in_sql() -> None:
    """Of an event that was sent: where it stands, the input's name as the topic, and the time; key
    and headers are NULL, which is a key in SQL. Without a schema they are columns as any other."""
    schema = {
        "type": "record",
        "name": "t.Click",
        "fields": [
            {"name": "n", "type": "long"},
            {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
    (loaded,) = load_rules(_OF_KAFKA, "rules.yaml")
    kit = RuleTest(loaded.rule, schema=schema, start=START)
    kit.send(n=1, ts=0, at=START)
    kit.send(n=5, ts=0, at=START + timedelta(seconds=1))
    kit.advance("1 minute")
    (match,) = kit.matches
    second = START + timedelta(seconds=1)
    assert match.measures == {"key": None, "first": 0, "topic": "clicks", "at": second}
    untyped = RuleTest(loaded.rule, start=START)
    for n, key in ((1, "k"), (2, "j"), (3, "k")):
        untyped.send({"n": n, "_kafka": {"key": key, "offset": n // 2, "topic": "own"}})
    untyped.advance("1 minute")
    (match,) = untyped.matches
    assert (match.key, match.measures["topic"], match.measures["first"]) == ("k", "own", 0)
