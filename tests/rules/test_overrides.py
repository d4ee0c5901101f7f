"""What operators decide beside the source: which versions run, and what is paused."""

from __future__ import annotations

from dataclasses import replace

from spark_cep.rules.overrides import (
    Override,
    Overrides,
    PauseOrder,
    PlacedOverride,
    RollbackOrder,
)
from spark_cep.rules.pauses import Pause
from spark_cep.rules.rule_set import RuleFile, RuleSet, assemble
from spark_cep.rules.sources.source import rule_file

_RULE = "id: {0}\nversion: {1}\nkey: k\nwithin: 1 s\npattern: [{{step: a, where: n = 1}}]\n"


def _file(rule: str, *versions: int) -> RuleFile:
    return rule_file("---\n".join(_RULE.format(rule, v) for v in versions), f"{rule}.yaml")


def _back(rule: str, version: int, instead_of: int) -> Overrides:
    order = RollbackOrder(version=version, instead_of=instead_of, rule=_RULE.format(rule, version))
    return Overrides({rule: PlacedOverride(Override(rollback=order), 3, "overrides/0/3")}, end=4)


def _versions(files: list[RuleFile]) -> list[tuple[str, int, str]]:
    return sorted(
        (one.rule.id, one.rule.version, one.places.source) for file in files for one in file.loaded
    )


def test_an_older_version_runs_instead() -> None:
    """Of all that the source has up to the one it stands for; its problems name the override."""
    files = [_file("a", 1, 2, 3), _file("b", 1)]
    there = _versions(_back("a", 2, 3).applied(files, RuleSet()))
    assert there == [("a", 2, "overrides/0/3"), ("b", 1, "b.yaml")]


def test_a_newer_version_ends_it() -> None:
    """So does a source that drops the rule; but not one that cannot be read, as long as the rule
    runs. An entry of another rule cannot hold it."""
    back = _back("a", 2, 3)
    running = assemble(_file("a", 2).loaded)
    for files in ([_file("a", 3, 4)], [_file("b", 1)], []):
        assert back.applied(files, running) == files
    broken = rule_file("id: [", "a.yaml")
    own, other = (replace(broken, rule=rule) for rule in "ab")
    for file in broken, own:
        assert _versions(back.applied([file], running)) == [("a", 2, "overrides/0/3")]
        assert back.applied([file], RuleSet()) == [file]
    assert back.applied([other], running) == [other]


def test_a_text_that_is_no_rule_is_rejected() -> None:
    """As an entry of its own, which keeps what ran."""
    order = RollbackOrder(version=2, instead_of=3, rule="id: other")
    placed = PlacedOverride(Override(rollback=order), 3, "overrides/0/3")
    *_, made = Overrides({"a": placed}).applied([_file("a", 3)], RuleSet())
    assert made.rule == "a"
    assert made.problems


def test_orders_of_a_topic_that_was_made_again() -> None:
    """A pause stays until the new topic has a record of the rule; without any topic it ends."""
    order = Override(by="anna", pause=PauseOrder(reason="noisy"))
    before = Overrides({"a": PlacedOverride(order, 6, "")}, end=7, topic="one").pauses({})
    for topic, left in (("one", {}), ("two", before), (None, {})):
        assert Overrides({}, end=0, topic=topic).pauses(before) == left
    resumed = Overrides({"a": PlacedOverride(Override(), 0, "")}, end=1, topic="two")
    assert resumed.pauses(before) == {}


def test_pauses() -> None:
    """An order pauses and its end resumes; what the job paused itself ends with a later record of
    the rule, and nothing ends with one that cannot be read."""
    ordered, made = Pause("noisy", "anna", 2), Pause("dead letters", "circuit breaker", 1, 7)
    order = Override(by="anna", pause=PauseOrder(reason="noisy", version=2))
    there = Overrides({"a": PlacedOverride(order, 6, "")}, end=7)
    assert there.pauses({"b": made}) == {"a": ordered, "b": made}
    assert Overrides({}, end=9).pauses({"a": ordered, "b": made}) == {"b": made}
    for offset, left in ((6, {"b": made}), (7, {})):
        assert Overrides({"b": PlacedOverride(Override(), offset, "")}).pauses({"b": made}) == left
    (problem,) = rule_file("id: 7", "x").problems[:1]
    unreadable = Overrides(unreadable={"a": problem})
    assert unreadable.pauses({"a": ordered}) == {"a": ordered}


def test_a_pause_made_before_the_topic_was_read() -> None:
    """Records that were there by then do not end it; the next one of the rule does."""
    made = Overrides().until_resumed(Pause("dead letters", "circuit breaker", 1))
    assert Overrides().pauses({"a": made}) == {"a": made}
    old = {"a": PlacedOverride(Override(), 3, "")}
    first = Overrides(old, end=4, topic="one").pauses({"a": made})
    assert first == {"a": replace(made, lifted_from=4, lifted_in="one")}
    assert Overrides(old, end=4, topic="one").pauses(first) == first
    resumed = Overrides({"a": PlacedOverride(Override(), 4, "")}, end=5, topic="one")
    assert resumed.pauses(first) == {}
