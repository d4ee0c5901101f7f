"""A repeated timeout is warned about where each match has one, and not where it may have none."""

from __future__ import annotations

import pytest

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.document.loading import load_rules
from spark_cep.testkit import RuleTest

A, B = "step: a, where: v = 'a'", "where: v = 'b'"
#: Steps, and events that match, end what else waits where something does, and let time pass.
PATTERNS = [
    (f"{{{A}}}, {{step: b, after: followed_by_any, {B}}}", "abx", True),
    (f"{{{A}}}, {{step: b, after: followed_by_any, {B}}}, {{step: c, after: next}}", "abcx", True),
    (f"{{{A}}}, {{step: b, after: followed_by, {B}, times: 1+}}", "abx", True),
    (f"{{{A}}}, {{step: b, after: next, {B}, times: 1+}}", "abx", True),
    (f"{{{A}, times: 2+}}", "aax", True),
    (f"{{{A}, times: 2..3}}", "aax", True),
    (f"{{{A}}}, {{step: b, after: followed_by, {B}, times: 2, loop: combinations}}", "abbx", True),
    (f"{{{A}}}, {{step: b, after: followed_by, {B}, optional: true}}", "ax", True),
    (f"{{{A}}}, {{step: b, after: followed_by, {B}, times: 0..2}}", "ax", True),
    (f"{{{A}, times: 2+}}, {{step: n, after: not_followed_by, where: v = 'n'}}", "aax", True),
    # An event that does not fit ends the loop, as the one of `until` does.
    (f"{{{A}, times: 2+, loop: consecutive}}", "aax", False),
    (f"{{{A}}}, {{step: b, after: next, {B}, times: 1+, loop: consecutive}}", "abx", False),
    (f"{{{A}}}, {{step: b, after: followed_by, {B}, times: 1+, until: v = 'x'}}", "abx", False),
    (f"{{{A}}}, {{step: b, after: next, {B}, optional: true}}", "ax", False),
    (f"{{{A}}}, {{step: b, after: followed_by, {B}}}", "abx", False),
    (f"{{{A}, times: 2, loop: consecutive}}", "aax", False),
]


@pytest.mark.parametrize(("steps", "events", "repeated"), PATTERNS)
def test_repeated_timeout(steps: str, events: str, repeated: bool) -> None:
    """The warning says what the engine does: a timeout of the events of each match, or of the first
    of them."""
    text = f"id: r\nkey: k\nwithin: 1 minute\npattern: [{steps}]\n"
    ((loaded),) = load_rules(text, "r")
    warned = Code.REPEATED_TIMEOUT in {warning.code for warning in loaded.warnings}
    kit = RuleTest(loaded.rule)
    for value in events:
        kit.send(k="key", v=value)
        kit.advance("1 second")
    kit.advance("10 minutes")
    matches = {match.steps["a"][0].time for match in kit.matches}
    timeouts = {found.steps["a"][0].time for found in kit.timeouts if found.already_matched}
    assert matches
    assert (matches <= timeouts) is repeated
    assert warned is repeated


@pytest.mark.parametrize(
    ("times", "said"),
    [("2+", "behind each match"), ("2..3", "with fewer than 3"), ("0..2", "with fewer than 2")],
)
def test_what_is_said(times: str, said: str) -> None:
    """A loop that is full does not go on."""
    steps = f"{{{A}}}, {{step: b, after: followed_by, {B}, times: {times}}}"
    (loaded,) = load_rules(f"id: r\nkey: k\nwithin: 1 minute\npattern: [{steps}]\n", "r")
    (warning,) = loaded.warnings
    assert said in warning.message
