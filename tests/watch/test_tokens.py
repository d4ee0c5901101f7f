"""Open partial matches as tokens: their numbers stay from one reading to the next."""

from __future__ import annotations

from spark_cep import Pattern
from spark_cep.compiler.rule_set import compile_rule
from spark_cep.matcher.findings.partial import FOREVER
from spark_cep.model import Coordinates
from spark_cep.pipeline.state.stored_group import HeldPartial, StoredRule
from spark_cep.play.running import drawing_of
from spark_cep.play.view import Fate
from spark_cep.watch.tokens import DrawnRule, Numbering, OpenToken

RULE = (
    Pattern.begin("fail").where("kind = 'a'").times_or_more(2).followed_by("ok").where("kind = 'b'")
    .within("1 minute").rule("r", key="user")
)  # fmt: skip
DRAWN = {("r", 1): DrawnRule("r", 1, drawing_of(RULE), compile_rule(RULE).steps, "")}


def held(*events: int, place: int = 1, step: int = 0) -> tuple[str, HeldPartial]:
    """A partial match of ann that has taken these offsets."""
    taken = [(step, Coordinates("t", 0, offset)) for offset in events]
    return "ann", HeldPartial(StoredRule("r", 1, "f", 0), events[0], FOREVER, taken, [place])


def told(tokens: dict[tuple[str, int], tuple[OpenToken, ...]]) -> list[tuple[object, ...]]:
    """By token: number, whether it has moved, from which it has parted, what it holds."""
    return [
        (each.token.number, each.token.moved, each.token.parent, each.token.held)
        for each in tokens.get(("r", 1), ())
    ]


def test_numbers_stay() -> None:
    """One that has taken more is the same; one that has parted from it is new, and so is what
    begins; numbers of those that have ended are free again."""
    numbering = Numbering()
    assert told(numbering.tokens([held(1), held(2)], DRAWN)) == [
        (1, True, None, "fail"),
        (2, True, None, "fail"),
    ]
    again = numbering.tokens([held(2), held(1, 3), held(1, 4), held(5)], DRAWN)
    assert told(again) == [
        (2, False, None, "fail"),
        (3, True, None, "fail"),
        (1, True, None, "fail ×2"),
        (4, True, 1, "fail ×2"),
    ]
    assert told(numbering.tokens([held(5)], DRAWN)) == [(3, False, None, "fail")]
    assert told(numbering.tokens([held(5), held(6)], DRAWN)) == [
        (3, False, None, "fail"),
        (1, True, None, "fail"),
    ]
    assert numbering.tokens([], DRAWN) == {}


def test_where_they_stand() -> None:
    """At the states of the drawing; complete ones are held back; without the rule, by numbers."""
    final = max(each.number for each in DRAWN["r", 1].drawing.states)
    ((back,),) = Numbering().tokens([held(1, 2, place=final)], DRAWN).values()
    assert (back.token.places, back.token.fate, back.key) == ((final,), Fate.HELD_BACK, "ann")
    ((unknown,),) = Numbering().tokens([held(1, place=7, step=4)], {}).values()
    assert (unknown.token.fate, unknown.token.held) == (Fate.ALIVE, "step 4")
