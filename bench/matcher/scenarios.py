"""What is measured: five rules, each with the kinds of events that pass its filter.

``flink/src/main/java/bench/Patterns.java`` has the same five as Flink patterns, under the same
names. Events of a key are ten seconds apart on average, so that with these windows one to three
partial matches of each key are alive, and three to ten events go to a match.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from spark_cep.compiler.rule_set import Partitioning, RuleSetPlan, compile_rules
from spark_cep.pattern.document.loading import load_rules


@dataclass(frozen=True)
class Scenario:
    """A rule, and how often each kind of event is among those that pass its filter."""

    name: str
    about: str
    pattern: str
    weights: Mapping[str, float]

    @cached_property
    def plan(self) -> RuleSetPlan:
        """The rule, compiled."""
        text = f"id: {self.name}\nkey: user\nevents: events\n{self.pattern}"
        return compile_rules(one.rule for one in load_rules(text, f"scenario {self.name}"))

    @property
    def rule(self) -> Partitioning:
        """The rule as a matcher wants it."""
        (partitioning,) = self.plan.partitionings
        return partitioning


SCENARIOS = (
    Scenario(
        "sequence",
        "three steps, relaxed",
        """\
pattern:
  - {step: a, where: kind = 'a'}
  - {step: b, after: followed_by, where: kind = 'b'}
  - {step: c, after: followed_by, where: kind = 'c'}
within: 1 minute
""",
        {"a": 0.4, "b": 0.3, "c": 0.3},
    ),
    Scenario(
        "times",
        "times 3, window",
        """\
pattern:
  - {step: a, where: kind = 'a', times: 3}
within: 30 seconds
after_match: skip_past_last_event
""",
        {"a": 1.0},
    ),
    Scenario(
        "strict",
        "strict run",
        """\
pattern:
  - {step: a, where: kind = 'a', times: 3, loop: consecutive}
  - {step: b, after: next, where: kind = 'b'}
within: 1 minute
""",
        {"a": 0.7, "b": 0.3},
    ),
    Scenario(
        "sum",
        "look-back with a sum",
        """\
pattern:
  - {step: a, where: kind = 'a', times: 3}
  - {step: b, after: followed_by, where: "kind = 'b' AND 2 * amount > SUM(a.amount)"}
within: 1 minute
""",
        {"a": 0.6, "b": 0.4},
    ),
    Scenario(
        "greedy",
        "greedy loop",
        """\
pattern:
  - {step: a, where: kind = 'a', times: 3+, greedy: true}
  - {step: b, after: followed_by, where: kind = 'b'}
within: 1 minute
after_match: skip_past_last_event
""",
        {"a": 0.7, "b": 0.3},
    ),
)
