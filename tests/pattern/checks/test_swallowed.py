"""A step is said to be swallowed where no event reaches it, and not where one may."""

from __future__ import annotations

import pytest

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.document.loading import load_rules
from spark_cep.testkit import RuleTest

#: A greedy loop, the step behind it, and whether that is swallowed.
STEPS = [
    ("where: v > 5, times: 2+", "after: followed_by", True),
    ("where: v > 5, times: 2+, loop: consecutive", "after: next", True),
    ("where: v > 5, times: 2..3", "after: followed_by", True),
    ("where: v > 5, times: 0..2", "after: followed_by_any", True),
    ("times: 2+", "after: followed_by", True),
    ("where: 'TRUE', times: 2+", "after: followed_by", True),
    ("where: v > 5 OR 1 = 1, times: 2+", "after: followed_by", True),
    ("where: v > 5, times: 2+, gap: 5 seconds", "after: followed_by", False),
    ("where: v > 5, times: 2..3, gap: 5 seconds", "after: followed_by", False),
    ("where: v > 5, times: 2+, until: v > 100", "after: followed_by", False),
    ("where: v > 5, times: 2", "after: followed_by", False),
    ("where: v < 10, times: 2+", "after: followed_by", False),
    ("where: v > 5, times: 2+", "after: followed_by, times: 0..2", False),
]


@pytest.mark.parametrize(("loop", "step", "swallowed"), STEPS)
def test_swallowed_step(loop: str, step: str, swallowed: bool) -> None:
    """The warning says what the engine does, with an event that ends a loop and a pause."""
    text = (
        f"id: r\nkey: k\nwithin: 1 hour\npattern: [{{step: a, {loop}, greedy: true}},"
        f" {{step: b, {step}, where: v > 8}}]\n"
    )
    (loaded,) = load_rules(text, "r")
    warned = Code.SWALLOWED_STEP in {warning.code for warning in loaded.warnings}
    kit = RuleTest(loaded.rule)
    for value in (9, 9, 101, 1, 9, 10):
        kit.send(k="key", v=value)
        kit.advance("10 seconds" if value == 101 else "1 second")
    assert any(match.steps.get("b") for match in kit.matches) is not swallowed
    assert warned is swallowed
