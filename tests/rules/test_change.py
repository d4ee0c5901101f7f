"""Which rules run next: a file is taken whole or not at all, and a bad one disturbs no other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from spark_cep.errors import Problem
from spark_cep.pattern.document.loading import LoadedRule, examine_rules
from spark_cep.rules.change import Change, next_rules
from spark_cep.rules.overrides import Override, Overrides, PlacedOverride, RollbackOrder
from spark_cep.rules.pauses import Pause
from spark_cep.rules.plans import plan_fingerprint
from spark_cep.rules.rule_set import RuleFile, RuleSet, assemble, conflicts

RULE = "{{id: {0}, version: {1}, key: k, pattern: [{{step: a, where: n = {2}}}]}}"


def text(rule_id: str, version: int = 1, value: int = 1, *more: str) -> str:
    """A rule of one step; ``more``: further keys."""
    return RULE.format(rule_id, version, value)[:-1] + "".join(f", {m}" for m in more) + "}"


def file(name: str, *texts: str) -> RuleFile:
    """A file of these rules."""
    loaded, problems = examine_rules("\n---\n".join(texts), f"/rules/{name}.yaml")
    return RuleFile(f"/rules/{name}.yaml", tuple(loaded), tuple(problems))


def running(*files: RuleFile) -> RuleSet:
    """The rules of files that were right."""
    return assemble(one for each in files for one in each.loaded)


def change(
    before: RuleSet,
    *files: RuleFile,
    most: int = 10,
    allow_empty: bool = False,
    ran: Iterable[RuleFile] = (),
    last: RuleSet | None = None,
) -> Change:
    """After versions that ``ran`` before, and ``last`` those of the last batch, where they are not
    those from ``before``; with a check that refuses a condition n = 99."""

    def check(one: LoadedRule) -> list[Problem]:
        wrong = "99" in str(one.rule.pattern)
        return [one.places.problem("the event has no column", ("pattern",))] if wrong else []

    fingerprints = {
        (one.rule.id, one.rule.version): plan_fingerprint(one)
        for each in ran
        for one in each.loaded
    }
    return next_rules(
        before, files, check, ran=before if last is None else last, most=most,
        allow_empty=allow_empty, fingerprints=fingerprints,
    )  # fmt: skip


def versions(rules: RuleSet) -> dict[str, int]:
    """By id."""
    return {rule.id: rule.version for rule in rules.rules}


def messages(found: Change) -> list[str]:
    """Of what is rejected."""
    return [problem.message for problem in found.rejected]


def test_rules_come_change_and_go() -> None:
    """What the files hold runs."""
    before = running(file("a", text("a")), file("b", text("b")))
    found = change(before, file("a", text("a", 2, 5)), file("c", text("c")))
    assert (versions(found.rules), found.rejected) == ({"a": 2, "c": 1}, ())


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ("id: [", "flow node"),
        (text("b", 2, 99), "the event has no column"),
        (text("b", 1, 7), "version 1 of this rule runs, and means something else"),
        (text("a", 1, 1), "version 1 of this rule is also in /rules/a.yaml"),
    ],
)
def test_a_bad_file_leaves_what_came_from_it(bad: str, told: str) -> None:
    """Whole, with the good rules that it holds; other files are taken."""
    before = running(file("a", text("a")), file("b", text("b"), text("beside")))
    found = change(before, file("a", text("a")), file("b", bad, text("new")), file("c", text("c")))
    assert versions(found.rules) == {"a": 1, "b": 1, "beside": 1, "c": 1}
    assert found.rules.loaded[1].rule == before.loaded[1].rule
    assert all(problem.source == "/rules/b.yaml" for problem in found.rejected)
    assert told in messages(found)[0]


def entry(rule: str, *texts: str) -> RuleFile:
    """A document of a URL, which stands for this rule."""
    return replace(file("url", *texts), rule=rule)


_SHADOW = "mode: shadow"
_V1, _V2 = text("a"), text("a", 2, 2)
_BROKEN = text("a", 3).replace("n = 1", "n =")


@pytest.mark.parametrize(
    ("before", "now", "left"),
    [
        # Its new name has a mistake in it; in its text, against the schema, in what it means.
        ([file("a-1", _V1)], [file("a-2", _BROKEN)], 1),
        ([file("a-1", _V1)], [file("a-2", text("a", 2, 99))], 1),
        ([file("a-1", _V1)], [file("a-2", text("a", 1, 2))], 1),
        # It is moved to a file with a mistake elsewhere.
        ([file("a", _V1, text("b"))], [file("a", text("b")), file("c", _V2, "id: c")], 1),
        # An older version is there, too.
        ([file("old", _V1), file("new", _V2)], [file("old", _V1), file("new", _BROKEN)], 2),
        ([file("old", _V1), file("new", _V2)], [file("old", _V1), file("new", "id: [")], 2),
        ([file("old", _V1), file("new", _V2)], [file("old", _V1), file("other", _BROKEN)], 2),
        ([entry("a", _V1), entry("a", _V2)], [entry("a", _V1), entry("a", _BROKEN)], 2),
        # A newer one that is off.
        (
            [file("old", _V1), file("new", text("a", 2, 2, "enabled: false"))],
            [file("old", "id: ["), file("new", text("a", 2, 2, "enabled: false"))],
            1,
        ),
        # A newer one in shadow mode would stop it.
        ([file("old", _V1)], [file("old", "id: ["), file("new", text("a", 2, 2, _SHADOW))], 1),
        # Its own file is good, and says what runs.
        ([file("a", _V2)], [file("a", _V1), file("draft", _BROKEN)], 1),
        ([file("a", _V1)], [file("a", _V2), file("draft", _BROKEN)], 2),
        ([file("a", _V1)], [file("a", text("a", 2, 2, _SHADOW)), file("draft", _BROKEN)], 2),
        ([entry("a", _V2)], [entry("a", _V1), replace(entry("", "key: k"), rule=None)], 1),
        # It is moved, or renamed, without a mistake.
        ([file("a-1", _V1)], [file("a-2", _V2), file("draft", _BROKEN)], 2),
        ([file("a-1", _V1)], [file("a-2", _V1), file("draft", _BROKEN)], 1),
        # It is gone, and the bad file does not speak of it.
        ([file("a", _V1)], [file("draft", _BROKEN.replace("id: a", "id: c"))], None),
        ([file("a", _V1), file("b", text("b"))], [file("b", text("b", 2, 99))], None),
    ],
)
def test_what_a_bad_file_leaves(
    before: list[RuleFile], now: list[RuleFile], left: int | None
) -> None:
    """The rules that it speaks of, also those that came from elsewhere; a version that runs is not
    exchanged for an older one. Which rules there are, good files say."""
    beside = file("beside", text("beside"))
    found = change(running(*before, beside), *now, beside)
    assert versions(found.rules).get("a") == left
    assert len(found.rejected) >= 1
    # The order of files does not matter.
    assert change(running(*before, beside), beside, *now[::-1]).rules.texts == found.rules.texts


def test_a_bad_file_that_never_ran() -> None:
    """Nothing runs instead of it."""
    found = change(running(file("a", text("a"))), file("a", text("a")), file("b", "id: ["))
    assert versions(found.rules) == {"a": 1}
    assert len(found.rejected) == 1


def test_a_rule_that_moved_out_of_a_bad_file() -> None:
    """It runs once, as the good file has it."""
    before = running(file("a", text("a"), text("b")))
    found = change(before, file("a", "id: ["), file("b", text("b", 2)))
    assert versions(found.rules) == {"a": 1, "b": 2}


def test_the_same_folder_elsewhere() -> None:
    """A file is known by its name: a folder may be mounted at another place."""
    before = running(file("a", text("a")))
    moved = RuleFile("/mnt/rules/a.yaml", (), (Problem(message="wrong"),))
    assert versions(change(before, moved).rules) == {"a": 1}


def test_what_keeps_its_meaning_keeps_its_version() -> None:
    """Texts, limits, and whether it is switched on, are no part of the meaning."""
    before = running(file("a", text("a")))
    for more in ("description: other", "enabled: false", "limits: {partial_matches: 7}"):
        found = change(before, file("a", text("a", 1, 1, more)))
        assert found.rejected == ()
        assert found.rules.loaded[0].rule != before.loaded[0].rule


_RAN = [file("a", text("a", 1, 1)), file("a", text("a", 2, 2)), file("b", text("b"))]


@pytest.mark.parametrize("now", [[], [text("a", 2, 2)]], ids=["removed", "replaced"])
def test_a_version_that_ran_before_keeps_its_meaning(now: list[str]) -> None:
    """Also where the rule was removed, or had other versions since: another meaning is rejected,
    also in an entry of several versions, and the same is taken."""
    before = running(file("a", *now), file("c", text("c")))
    other, beside = file("a", text("a", 1, 7)), file("c", text("c"))
    for files in ([other, beside], [file("a", text("a", 1, 7), text("a", 3, 3)), beside]):
        found = change(before, *files, ran=_RAN)
        (problem,) = found.rejected
        assert problem.message == "version 1 of this rule ran before, and meant something else"
        assert problem.allowed == "a changed rule has a higher version: 3"
        assert problem.source == "/rules/a.yaml"
        assert problem.span is not None
        assert versions(found.rules) == versions(before)
    same = file("a", text("a", 1, 1, "description: other", "mode: shadow"))
    found = change(before, same, beside, ran=_RAN)
    assert (versions(found.rules), found.rejected) == ({"a": 1, "c": 1}, ())


def test_a_rollback_to_another_meaning() -> None:
    """The text of an order is held against what ran, too."""
    before = running(file("a", text("a", 2, 2)))
    for value, version in (1, 1), (7, 2):
        order = RollbackOrder(version=1, instead_of=2, rule=text("a", 1, value))
        placed = PlacedOverride(Override(rollback=order), 4, "overrides/0/4")
        files = Overrides({"a": placed}).applied([file("a", text("a", 2, 2))], before)
        found = change(before, *files, ran=_RAN)
        assert versions(found.rules) == {"a": version}
        assert [problem.source for problem in found.rejected] == ["overrides/0/4"] * (version - 1)


def test_a_shadow_version_stops_no_live_one() -> None:
    """It is rejected, with the file of the live one, which runs on; with an id of its own it runs
    beside it, and once the live one is gone or switched off under the same."""
    live = file("a", text("a", 3, 3))
    shadow = file("next", text("a", 4, 4, _SHADOW))
    found = change(running(live), live, shadow)
    assert versions(found.rules) == {"a": 3}
    (problem,) = found.rejected
    assert "version 4 of this rule is in shadow mode, and version 3 is live" in problem.message
    assert (problem.source, "/rules/a.yaml" in problem.message) == ("/rules/next.yaml", True)
    # Whichever was there first.
    found = change(running(shadow), live, shadow)
    assert versions(found.rules) == {"a": 4}
    assert [each.source for each in found.rejected] == ["/rules/a.yaml"]
    for files, expected in (
        ([live, file("next", text("b", 4, 4, _SHADOW))], {"a": 3, "b": 4}),
        ([shadow], {"a": 4}),
        ([file("a", text("a", 3, 3, "enabled: false")), shadow], {"a": 4}),
        ([live, file("next", text("a", 4, 4))], {"a": 4}),
        ([live, file("next", text("a", 2, 4, _SHADOW))], {"a": 3}),
    ):
        found = change(running(live), *files)
        assert (versions(found.rules), found.rejected) == (expected, ())


def test_a_lower_version_is_taken() -> None:
    """A roll-back."""
    before = running(file("a", text("a", 2, 5)))
    assert versions(change(before, file("a", text("a", 1, 3))).rules) == {"a": 1}


def test_all_at_once_is_a_mistake() -> None:
    """No rules any more, or too many: all go on, unless it is allowed."""
    before = running(file("a", text("a")))
    found = change(before)
    assert (found.rules, len(found.rejected)) == (before, 1)
    assert "the 1 there were run on" in messages(found)[0]
    assert change(before, allow_empty=True).rules == RuleSet()
    for bad in ("# nothing", "id: ["):
        found = change(before, file("other", bad))
        assert (found.rules, len(found.rejected)) == (before, 2)
        assert "the 1 there were run on" in messages(found)[1]
        assert change(before, file("other", bad), allow_empty=True).rules == RuleSet()
    off = file("b", text("b", 1, 1, "enabled: false"))
    assert versions(change(before, off).rules) == {"b": 1}
    found = change(before, file("b", text("b"), text("c")), most=1)
    assert found.rules == before
    assert messages(found) == ["2 rules would run; all rules of before run on"]
    off = file("b", text("b"), text("c", 1, 1, "enabled: false"))
    assert versions(change(before, off, most=1).rules) == {"b": 1, "c": 1}


def test_nothing_ran_before() -> None:
    """What is right runs, in the order of ids."""
    found = change(RuleSet(), file("b", text("b")), file("a", text("a")), file("c", "id: ["))
    assert [rule.id for rule in found.rules.rules] == ["a", "b"]


DRAIN = "previous_version: drain"


def draining(rules: RuleSet) -> list[tuple[str, int, int | None]]:
    """Id, version and limit."""
    return [(each.rule.id, each.rule.version, each.limit_ms) for each in rules.draining]


@pytest.mark.parametrize(
    ("old", "new", "limit"),
    [
        ("enabled: true", DRAIN, 86_400_000),
        ("within: 3 days", DRAIN, 3 * 86_400_000),
        ("within: {gap: 1 minute}", DRAIN, 86_400_000),
        ("within: 3 days", DRAIN + ", drain_limit: 5 s", 5_000),
    ],
)
def test_an_old_version_drains(old: str, new: str, limit: int) -> None:
    """Where the new one says so; for its window or a day, unless another limit is given."""
    before = running(file("a", text("a", 1, 1, old), text("b")))
    found = change(before, file("a", text("a", 2, 2, new), text("b")))
    assert (versions(found.rules), draining(found.rules)) == ({"a": 2, "b": 1}, [("a", 1, limit)])
    assert (
        found.rules.fingerprint != running(file("a", text("a", 2, 2, new), text("b"))).fingerprint
    )
    # With nothing changed it goes on.
    again = change(found.rules, file("a", text("a", 2, 2, new), text("b")))
    assert again.rules == found.rules


def test_a_third_version() -> None:
    """The first one goes on draining; what becomes of the second one the third one says. At most
    four drain."""
    rules = running(file("a", text("a")))
    rules = change(rules, file("a", text("a", 2, 2, DRAIN))).rules
    third = change(rules, file("a", text("a", 3, 3))).rules
    assert [version for _, version, _ in draining(third)] == [1]
    for version in range(3, 8):
        rules = change(rules, file("a", text("a", version, version, DRAIN))).rules
    assert [version for _, version, _ in draining(rules)] == [3, 4, 5, 6]


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ([file("a", text("a"))], []),
        ([file("a", text("a", 2, 2, DRAIN, "enabled: false"))], []),
        ([file("a", text("a", 1, 1, DRAIN), text("a", 2, 2, DRAIN, "enabled: false"))], []),
        ([file("b", text("b"))], []),
        ([file("a", "id: [")], [1]),
        ([file("a", text("a", 2, 2, DRAIN)), file("b", text("b"))], [1]),
    ],
    ids=["back", "off", "back by switching off", "removed", "rejected", "beside another"],
)
def test_what_ends_a_drain(files: list[RuleFile], left: list[int]) -> None:
    """The rule goes, is switched off, or goes back; what disturbs nothing else does not disturb
    it."""
    rules = change(running(file("a", text("a"))), file("a", text("a", 2, 2, DRAIN))).rules
    assert [version for _, version, _ in draining(change(rules, *files).rules)] == left


def test_back_to_a_lower_version() -> None:
    """The higher one does not drain, whatever the lower one says."""
    before = running(file("a", text("a", 2, 5)))
    assert draining(change(before, file("a", text("a", 1, 3, DRAIN))).rules) == []


def begins(second: int) -> str:
    """A version that begins then."""
    return f"effective_from: 1970-01-01T00:00:{second:02}Z"


def times(rules: RuleSet) -> list[tuple[int, int | None, int | None]]:
    """Version, limit and beginning of the next."""
    return [(each.rule.version, each.limit_ms, each.until_ms) for each in rules.draining]


DAY = 86_400_000


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        # From its own beginning to the next one's.
        ([[begins(9)]], [(1, None, 5_000), (2, None, 9_000)]),
        ([[begins(9), DRAIN]], [(1, None, 5_000), (2, DAY, 9_000)]),
        # The second version has nothing before the third.
        ([[begins(3)]], [(1, None, 3_000)]),
        ([[begins(3), DRAIN]], [(1, DAY, 3_000), (2, DAY, None)]),
        # One that begins now: whether another had begun is for key groups to say.
        ([[]], [(1, None, None)]),
        ([[DRAIN]], [(1, DAY, None), (2, DAY, None)]),
        ([[], []], [(1, None, None)]),
    ],
)
def test_versions_that_begin_later(
    more: list[list[str]], expected: list[tuple[int, int | None, int | None]]
) -> None:
    """Which events each of them has."""
    rules = change(running(file("a", text("a"))), file("a", text("a", 2, 2, begins(5)))).rules
    assert times(rules) == [(1, None, 5_000)]
    for version, keys in enumerate(more, 3):
        rules = change(rules, file("a", text("a", version, version, *keys))).rules
    assert times(rules) == expected


def test_so_many_versions_wait() -> None:
    """With one more the version that is in effect would end; one that begins sooner is taken."""
    rules = running(file("a", text("a")))
    for version in range(2, 6):
        rules = change(rules, file("a", text("a", version, version, begins(version)))).rules
    assert [until for _, _, until in times(rules)] == [2_000, 3_000, 4_000, 5_000]
    found = change(rules, file("a", text("a", 6, 6, begins(6))))
    assert found.rules == rules
    assert messages(found) == ["4 versions of this rule wait for their time already"]
    sooner = change(rules, file("a", text("a", 6, 6, begins(3))))
    assert times(sooner.rules)[:2] == [(1, None, 2_000), (2, None, 3_000)]


def test_the_beginning_is_not_moved() -> None:
    """What was read before would be two versions', or none's; a higher version has another time.
    The description may change."""
    before = running(file("a", text("a")))
    rules = change(before, file("a", text("a", 2, 2, begins(5), DRAIN))).rules
    for new in [begins(9)], [begins(3)], []:
        found = change(rules, file("a", text("a", 2, 2, *new, DRAIN)))
        assert found.rules == rules
        assert messages(found) == ["version 2 of this rule is there with another time to begin"]
        assert found.rejected[0].allowed == "a higher version: 3"
    assert change(before, file("a", text("a", 1, 1, begins(5)))).rules == before
    described = change(rules, file("a", text("a", 2, 2, begins(5), DRAIN, "description: b")))
    assert described.rejected == ()


def test_back_from_a_version_that_begins_sooner() -> None:
    """The time of the one that is put back counts again; without one it begins now, and what would
    have run until then ends."""
    before = running(file("a", text("a")))
    rules = change(before, file("a", text("a", 2, 2, begins(5), DRAIN))).rules
    sooner = change(rules, file("a", text("a", 3, 3, begins(4)))).rules
    back = change(sooner, file("a", text("a", 2, 2, begins(5), DRAIN))).rules
    assert times(back) == [(1, None, 5_000)]
    assert times(change(rules, file("a", text("a"))).rules) == []
    later = change(rules, file("a", text("a", 3, 3, begins(9)))).rules
    assert times(later) == [(1, DAY, 5_000), (2, None, 9_000)]
    now = change(later, file("a", text("a", 2, 2))).rules
    assert times(now) == [(1, None, None)]


def test_nothing_is_carried_over_from_sql() -> None:
    """It is said, and the version in SQL runs on."""
    query = "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k PATTERN (x) DEFINE x AS n = 1)"
    in_sql = f"id: a\nversion: 1\nsql: {query}"
    before = running(file("a", in_sql))
    found = change(before, file("a", text("a", 2, 2, CARRY)))
    assert found.rules == before
    assert messages(found) == [
        "nothing can be carried over: version 1 of this rule, which runs, is in SQL"
    ]


CARRY = "previous_version: carry"


def carried(rules: RuleSet) -> list[int]:
    """Versions of rule a."""
    return [one.rule.version for one in rules.carried if one.rule.id == "a"]


def test_a_version_is_carried_over() -> None:
    """As long as the one runs that says so; the one before it alone, which a batch had."""
    rules = running(file("a", text("a"), text("b")))
    for version, expected in (2, [1]), (3, [2]), (4, [3]), (6, [4]):
        before = rules
        files = [file("a", text("a", version, version, CARRY), text("b"))]
        rules = change(before, *files).rules
        assert (carried(rules), len(rules.carried)) == (expected, len(expected))
        assert rules.fingerprint != before.fingerprint
        assert draining(rules) == []
    rules = change(rules, file("a", text("a", 7, 7, CARRY), text("b"))).rules
    assert carried(rules) == [6]
    for kept in (
        change(rules, file("a", text("a", 7, 7, CARRY), text("b", 2, 2))),
        change(rules, file("a", "id: [")),
    ):
        assert carried(kept.rules) == [6]


@pytest.mark.parametrize(
    "files",
    [
        [file("a", text("a", 3, 3))],
        [file("a", text("a", 3, 3, DRAIN))],
        [file("a", text("a", 1, 1, CARRY))],
        [file("a", text("a", 2, 2, CARRY, "enabled: false"))],
        [file("b", text("b"))],
    ],
    ids=["restart", "drain", "back", "off", "removed"],
)
def test_what_is_not_carried_over(files: list[RuleFile]) -> None:
    """To a version that does not say so, or back, or to none."""
    rules = change(running(file("a", text("a"))), file("a", text("a", 2, 2, CARRY))).rules
    assert carried(rules) == [1]
    assert carried(change(rules, *files).rules) == []


def published(last: RuleSet, *several: RuleFile) -> RuleSet:
    """Files one after the other, of which none is rejected, behind the set of the last batch."""
    rules = last
    for each in several:
        found = change(rules, each, last=last)
        assert messages(found) == []
        rules = found.rules
    return rules


@pytest.mark.parametrize("how", [CARRY, DRAIN])
@pytest.mark.parametrize("between", [CARRY, DRAIN, "previous_version: restart"])
def test_versions_that_no_batch_had_leave_nothing(how: str, between: str) -> None:
    """However many there are: the last one follows the one that ran, as if they had never been
    there."""
    last = running(file("a", text("a"), text("b")))
    several = [file("a", text("a", n, n, between), text("b")) for n in range(2, 8)]
    newest = file("a", text("a", 8, 8, how), text("b"))
    rules = published(last, *several, newest)
    assert rules == change(last, newest).rules
    assert carried(rules) == ([1] if how == CARRY else [])
    assert draining(rules) == ([] if how == CARRY else [("a", 1, DAY)])
    # Nothing new is read.
    assert change(rules, newest, last=last).rules == rules


def test_versions_that_no_batch_had_push_out_none() -> None:
    """Of five versions that ran the oldest ends for the one that does, however many come before
    the next batch."""
    last = running(file("a", text("a")))
    for version in range(2, 6):
        last = change(last, file("a", text("a", version, version, DRAIN))).rules
    several = [file("a", text("a", n, n, DRAIN)) for n in range(6, 12)]
    rules = published(last, *several)
    assert [version for _, version, _ in draining(last)] == [1, 2, 3, 4]
    assert [version for _, version, _ in draining(rules)] == [2, 3, 4, 5]


def test_back_before_any_batch() -> None:
    """To the version that ran: nothing has happened. To one that did not, above it: that follows
    the one that ran. Removed and put back in between, or paused and resumed, it is as before."""
    first = running(file("a", text("a")), file("b", text("b")))
    b = file("b", text("b"))
    for how, last in (
        (DRAIN, change(first, file("a", text("a", 2, 2, DRAIN)), b).rules),
        (CARRY, change(first, file("a", text("a", 2, 2, CARRY)), b).rules),
    ):
        same = file("a", text("a", 2, 2, how))
        wanted = change(last, file("a", text("a", 5, 5, DRAIN)), b, last=last).rules
        assert change(wanted, same, b, last=last).rules == last
        lower = change(wanted, file("a", text("a", 3, 3, CARRY)), b, last=last).rules
        assert carried(lower) == [2]
        removed = change(wanted, b, last=last).rules
        assert (draining(removed), carried(removed)) == ([], [])
        assert change(removed, same, b, last=last).rules == last
        paused = last.pausing({"a": Pause("why", "who")})
        assert (draining(paused), carried(paused)) == ([], [])
        assert change(paused, same, b, last=last).rules == last


def test_a_version_in_sql_that_no_batch_had() -> None:
    """Another one may carry over what ran before it; and not where that is in SQL, whatever was
    there since."""
    query = "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k PATTERN (x) DEFINE x AS n = 1)"
    steps, carries = running(file("a", text("a"))), file("a", text("a", 3, 3, CARRY))
    rules = published(steps, file("a", f"id: a\nversion: 2\nsql: {query}"), carries)
    assert carried(rules) == [1]
    in_sql = running(file("a", f"id: a\nversion: 1\nsql: {query}"))
    wanted = change(in_sql, file("a", text("a", 2, 2)), last=in_sql).rules
    assert messages(change(wanted, carries, last=in_sql)) == [
        "nothing can be carried over: version 1 of this rule, which runs, is in SQL"
    ]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        # Each has the events up to the next one's beginning, whether a batch came or not.
        ([[begins(5)], [begins(9)]], [(1, None, 5_000), (2, None, 9_000)]),
        ([[DRAIN], [begins(9)]], [(1, DAY, None), (2, None, 9_000)]),
        ([[], [begins(9)]], [(2, None, 9_000)]),
        # Without a time of its own a version that another one replaces has no events.
        ([[begins(5)], [begins(3)]], [(1, None, 3_000)]),
        ([[begins(5)], [begins(3), DRAIN]], [(1, DAY, 3_000)]),
        ([[begins(5)], [DRAIN]], [(1, DAY, None)]),
        ([[begins(5)], []], []),
        ([[begins(5), DRAIN], [begins(9)], [begins(7)]], [(1, DAY, 5_000), (2, None, 7_000)]),
        (
            [[begins(5)], [begins(9)], [begins(3)], [begins(6)]],
            [(1, None, 3_000), (4, None, 6_000)],
        ),
    ],
)
def test_versions_that_begin_later_before_any_batch(
    new: list[list[str]], expected: list[tuple[int, int | None, int | None]]
) -> None:
    """Those that have events of their own run; the others leave nothing."""
    last = running(file("a", text("a")))
    rules = published(
        last,
        *(file("a", text("a", version, version, *keys)) for version, keys in enumerate(new, 2)),
    )
    assert times(rules) == expected


def test_a_version_that_waits_pushes_out_none() -> None:
    """It is rejected while four others drain or wait, and taken when one of them has drained."""
    last = running(file("a", text("a")))
    for version in range(2, 5):
        last = change(last, file("a", text("a", version, version, DRAIN))).rules
    rules = published(last, file("a", text("a", 5, 5, begins(5))))
    waits = file("a", text("a", 6, 6, begins(6)))
    found = change(rules, waits, last=last)
    assert (found.rules, messages(found)) == (
        rules,
        ["4 versions of this rule drain or wait for their time already"],
    )
    assert found.rejected[0].allowed == "4 at most: later, when one has drained"
    last, rules = (each.without_draining({("a", 1)}) for each in (last, rules))
    rules = change(rules, waits, last=last).rules
    assert [version for version, _, _ in times(rules)] == [2, 3, 4, 5]


def test_the_cost_of_a_change_grows_with_the_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with their square: each rule is held against those of its id, a few times."""
    held = 0

    def counting(loaded: Iterable[LoadedRule]) -> list[Problem]:
        nonlocal held
        several = list(loaded)
        held += len(several)
        return conflicts(several)

    monkeypatch.setattr("spark_cep.rules.change.conflicts", counting)
    monkeypatch.setattr("spark_cep.rules.rule_set.conflicts", counting)
    costs = []
    for count in (10, 40):
        files = [file(f"r{number}", text(f"r{number}")) for number in range(count)]
        before, held = running(*files), 0
        found = change(before, *files[1:], file("r0", text("r0", 2, 2)), most=count)
        assert (versions(found.rules)["r0"], found.rejected) == (2, ())
        costs.append(held)
    assert costs[1] == 4 * costs[0]
