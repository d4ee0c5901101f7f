"""The result of a trial: frames, partial matches in the drawing, spans, and what is wrong."""

from __future__ import annotations

from dataclasses import replace

from spark_cep.compiler.plan import StateKind
from spark_cep.pattern.document.loading import load_rules
from spark_cep.play.running import played
from spark_cep.play.trial import MOST_KEYS, MOST_ROWS, OF_ALL, RowKind, TrialRow
from spark_cep.play.view import DrawnPartial, Fate, KeyMoment, Played, SpanKind
from spark_cep.testkit import RuleTest
from tests.play.trials import NOT, PAIR, SQL, clock, event, trial


def kind_of(found: Played, token: DrawnPartial) -> set[StateKind]:
    """The kinds of the states at which a partial match stands."""
    assert found.drawn is not None
    kinds = {state.number: state.kind for state in found.drawn.states}
    return {kinds[place] for place in token.places}


def only(frame: KeyMoment) -> DrawnPartial:
    """The only partial match of a frame."""
    (token,) = frame.tokens
    return token


def test_a_partial_match_moves_from_state_to_state() -> None:
    """It stands at the next state once it has taken an event, and at the last one as a match."""
    found = played(
        trial(
            PAIR, event("0 s", kind="a", n=1), event("5 s", kind="x"), event("9 s", kind="b", n=2)
        )
    )
    begun, passed, matched = found.frames
    assert found.drawn is not None
    label = {state.number: state.lines[0] for state in found.drawn.states}
    (place,) = only(begun).places
    assert label[place].split()[1] == "b"
    assert (only(begun).number, only(begun).fate, only(begun).moved) == (1, Fate.ALIVE, True)
    assert only(passed).places == only(begun).places
    assert not only(passed).moved
    assert only(matched).fate is Fate.MATCHED
    assert kind_of(found, only(matched)) == {StateKind.FINAL}
    assert [frame.at for frame in found.frames] == ["0 ms", "5 seconds", "9 seconds"]
    assert [frame.row for frame in found.frames] == [0, 1, 2]


def test_the_why_text_of_an_event() -> None:
    """It names the part of the condition that was not true, with the values seen."""
    found = played(trial(PAIR, event("0 s", kind="a", n=3), event("1 s", kind="b", n=2)))
    text = "\n".join(found.frames[1].lines)
    assert "1 (a) passes it over" in text
    assert "n > LAST(a.n) is not true: n is 2, LAST(a.n) is 3" in text
    assert found.frames[1].state == "passed over"


def test_partial_matches_part() -> None:
    """One that parts from another names it, and each has what it has taken."""
    rule = PAIR.replace("followed_by", "followed_by_any").replace(" AND n > a.n", "\n    times: 2")
    rows = [event("0 s", kind="a"), *(event(f"{n} s", kind="b") for n in (1, 2, 3))]
    found = played(trial(rule, *rows))
    third = {token.number: token for token in found.frames[2].tokens}
    assert {token.parent for token in third.values()} == {None, 1}
    assert {token.held for token in third.values()} >= {"a", "a, b"}


def test_a_deadline_is_a_frame_of_its_own() -> None:
    """What runs out of time is told at its deadline, once the clock has passed it."""
    found = played(trial(PAIR, event("0 s", kind="a", n=1), clock("2 minutes")))
    _, deadline = found.frames
    assert (deadline.row, deadline.at, deadline.title) == (None, "1 minute", "the time passes")
    assert only(deadline).fate is Fate.TIMED_OUT
    (span,) = found.spans
    assert (span.kind, span.frame, span.end) == (SpanKind.TIMEOUT, 1, deadline.time)


def test_absence_is_a_match_at_its_deadline() -> None:
    """A NOT that was not violated is a match; one that was stands at the state that stops."""
    late = played(trial(NOT, event("0 s", kind="order"), clock("2 minutes")))
    assert only(late.frames[-1]).fate is Fate.MATCHED
    assert [span.kind for span in late.spans] == [SpanKind.MATCH]
    assert late.spans[0].frame == len(late.frames) - 1
    paid = played(trial(NOT, event("0 s", kind="order"), event("5 s", kind="paid")))
    assert only(paid.frames[-1]).fate is Fate.ENDED
    assert kind_of(paid, only(paid.frames[-1])) == {StateKind.STOP}


def test_a_rule_in_sql() -> None:
    """Ways through the program stand at its instructions."""
    rows = [event(f"{n} s", n=n) for n in (1, 2, 3)]
    given = replace(trial(SQL, *rows, event("9 s", n=0), file="rise.sql"), event_time="ts")
    found = played(given)
    assert found.rule == "rise"
    assert found.drawn is not None
    taken = [token for frame in found.frames for token in frame.tokens if token.moved]
    states = {state.number: state.lines[0] for state in found.drawn.states}
    assert any("UP" in states[place] for token in taken for place in token.places)
    assert [span.kind for span in found.spans].count(SpanKind.MATCH) == 1
    assert "top: 3" in found.spans[0].lines


def test_several_keys_are_told_in_the_order_of_time() -> None:
    """Frames are of all keys; a partial match is of the frame's own."""
    found = played(
        trial(
            PAIR,
            event("0 s", "ann", kind="a", n=1),
            event("1 s", "bob", kind="a", n=1),
            event("2 s", "ann", kind="b", n=2),
        )
    )
    assert [frame.key for frame in found.frames] == ["ann", "bob", "ann"]
    assert [len(frame.tokens) for frame in found.frames] == [1, 1, 1]
    assert found.verdicts is not None
    assert found.verdicts["ann"] == ()
    assert "Nothing matched" in found.verdicts["bob"][0]


def test_late_events_and_dead_letters() -> None:
    """A late event is told when it comes; one without key is a dead letter."""
    rows = [
        event("0 s", kind="a", n=1),
        event("50 s", kind="x"),
        event("1 s", kind="b", n=2),
        TrialRow(at="51 s", cells={"kind": "a"}),
    ]
    found = played(trial(PAIR, *rows))
    assert found.rows is not None
    assert [found.rows[row].state for row in range(4)] == [
        "taken", "passed over", "late", "dead letter: missing_key"
    ]  # fmt: skip
    assert [frame.row for frame in found.frames][:3] == [0, 1, 2]
    late = found.frames[2]
    assert late.tokens == ()
    assert "late: the watermark had passed its time" in late.lines[0]


def test_the_results_are_those_of_the_test_kit() -> None:
    """Matches and timeouts are as many as the kit finds with the same events."""
    rows = [event(f"{n} s", kind="ab"[n % 2], n=n) for n in range(20)]
    found = played(trial(PAIR, *rows, clock("10 minutes")))
    kit = RuleTest(load_rules(PAIR, "rule.yaml"))
    for row in rows:
        number = int(row.cells["n"])
        kit.send(user="ann", kind=row.cells["kind"], n=number, at=f"2026-01-01T00:00:{number:02}Z")
    kit.advance("10 minutes")
    kinds = [span.kind for span in found.spans]
    assert kinds.count(SpanKind.MATCH) == len(kit.matches) > 0
    assert kinds.count(SpanKind.TIMEOUT) == len(kit.timeouts)


def test_other_rows_than_events() -> None:
    """The watermark, a restart and the end of the input are as in test cases."""
    rows = [
        event("0 s", kind="a", n=1),
        TrialRow(RowKind.RESTART),
        TrialRow(RowKind.WATERMARK, "10 s"),
        event("5 s", kind="b", n=2),
        TrialRow(RowKind.FINISH),
    ]
    found = played(trial(PAIR, *rows))
    assert found.problems == ()
    assert found.rows is not None
    assert found.rows[3].state == "late"
    assert [span.kind for span in found.spans] == [SpanKind.TIMEOUT]


def test_problems_name_their_row() -> None:
    """A cell that cannot be read, a time that is none, a value that does not fit the schema."""
    cell = played(trial(PAIR, event("0 s", kind="a"), event("1 s", kind="[a")))
    assert [(each.row, each.field) for each in cell.problems] == [(1, "kind")]
    time = played(trial(PAIR, event("0 s", kind="a"), event("soon", kind="b")))
    assert [(each.row, each.field) for each in time.problems] == [(1, "at")]
    schema = (
        '{"type": "record", "name": "E", "fields": [{"name": "user", "type": "string"},'
        ' {"name": "kind", "type": "string"}, {"name": "n", "type": ["null", "int"]}]}'
    )
    given = replace(
        trial(PAIR, event("0 s", kind="a", n=1), event("1 s", kind="b", n="'x'")),
        schemas={OF_ALL: schema},
    )
    value = played(given)
    (problem,) = value.problems
    assert problem.row == 1
    assert "E.n cannot be 'x'" in problem.message
    # What was sent before is shown.
    assert [frame.row for frame in value.frames] == [0]


def test_a_schema_that_is_none() -> None:
    """It is a problem of the schema, and nothing is run."""
    found = played(replace(trial(PAIR, event("0 s")), schemas={OF_ALL: '{"type": "rec'}))
    assert [each.field for each in found.problems] == ["schema"]
    assert found.frames == ()


def test_text_of_a_schema_is_taken_as_it_is() -> None:
    """Where the schema says text, a cell need not be quoted to be it."""
    schema = (
        '{"type": "record", "name": "E", "fields": [{"name": "user", "type": "string"},'
        ' {"name": "kind", "type": "string"}, {"name": "n", "type": "int", "default": 0}]}'
    )
    given = trial(PAIR, event("0 s", user="17", kind="a", n=1))
    assert played(given).frames[0].key == "17"
    typed = played(replace(given, schemas={OF_ALL: schema}))
    assert typed.problems == ()
    assert typed.frames[0].key == "17"
    assert "user '17'" in typed.frames[0].title


def test_a_rule_with_problems_has_no_result() -> None:
    """What is wrong with it is for the editor to say."""
    assert played(trial(PAIR.replace("where", "wehre"))) == Played()


def test_without_events_the_automaton_is_drawn() -> None:
    """And the columns that the rule reads are known, for the table."""
    found = played(trial(PAIR))
    assert found.drawn is not None
    assert found.columns == ("user", "kind", "n")
    assert found.frames == ()


def test_several_rules() -> None:
    """The one that is named is tried; the first where none is."""
    both = trial(f"{PAIR}---\n{NOT}", event("0 s", kind="order"))
    assert (played(both).rules, played(both).rule) == (("pair", "unpaid"), "pair")
    other = played(replace(both, rule="unpaid"))
    assert other.rule == "unpaid"
    assert other.frames[0].state == "taken"


def test_limits() -> None:
    """More rows than are run are a problem; more keys than are shown are a note."""
    many = played(trial(PAIR, *[event("0 s", kind="a")] * (MOST_ROWS + 1)))
    assert f"at most {MOST_ROWS:,}" in many.problems[0].message
    keys = [event("0 s", user=f"user-{n:03}", kind="x") for n in range(MOST_KEYS + 2)]
    found = played(trial(PAIR, *keys))
    assert found.notes == (f"the first {MOST_KEYS} of {MOST_KEYS + 2} keys are shown",)
    assert found.rows is not None
    assert found.rows[MOST_KEYS].state == "of no key that is shown"
