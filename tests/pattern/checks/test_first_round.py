"""A condition that refers to a later step of its group is warned about where no event can begin
the first round."""

from __future__ import annotations

import pytest

from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.document.loading import load_rules
from spark_cep.testkit import RuleTest

B = "{step: b, after: followed_by, where: v < 10}"
#: The steps of a group that is taken twice, and whether no event can begin its first round.
GROUPS = [
    (f"{{step: a, where: v > b.v}}, {B}", True),
    (f"{{step: a, where: v > 10 AND (v > b.v OR v < b.v)}}, {B}", True),
    (f"{{step: a, group: [{{step: c, where: v > b.v}}]}}, {B}", True),
    (f"{{step: a, where: v > b.v OR b.v IS NULL}}, {B}", False),
    (f"{{step: a, where: v > 10 OR v > b.v}}, {B}", False),
    (f"{{step: a, where: v > COUNT(b.*)}}, {B}", False),
    ("{step: s}, {step: a, after: followed_by, where: v > b.v, optional: true}, " + B, False),
    (f"{{step: a, where: v > 10}}, {B.replace('v < 10', 'v < a.v')}", False),
]


@pytest.mark.parametrize(("steps", "never"), GROUPS)
def test_first_round(steps: str, never: bool) -> None:
    """The warning says what the engine does."""
    text = (
        "id: r\nkey: k\nwithin: 1 hour\nafter_match: skip_to_next\n"
        f"pattern: [{{step: g, times: 2, group: [{steps}]}}]\n"
    )
    (loaded,) = load_rules(text, "r")
    warned = Code.UNTAKEN_STEP in {warning.code for warning in loaded.warnings}
    kit = RuleTest(loaded.rule)
    for value in (20, 1, 20, 1, 20, 1):
        kit.send(k="key", v=value)
        kit.advance("1 second")
    kit.advance("1 day")
    assert bool(kit.matches) is not never
    assert warned is never
