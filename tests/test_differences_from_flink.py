"""Where answers differ from Flink CEP's on purpose: what Flink does, and what is done here.

Each class is one difference. ``FLINK`` holds what Flink CEP 2.2.0 answered: its ``CepOperator`` was
given the same pattern, events and watermarks in a local job, and each line is one call of the
process function with the context's timestamp, in the order of the calls. Flink's end of input moves
time to its end; :func:`ours` does the same. Cases named like ``group-008`` are of the file that
``tests/conformance`` reads, with ids that begin at 0.

Written late events are compared with Flink's in ``tests/e2e/test_late_events.py``.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.errors import RuleSetError
from spark_cep.model import Coordinates
from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.checks.cautions import cautions
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.expressions import Expression, parse
from spark_cep.pattern.fluent import Pattern
from spark_cep.pattern.tree import Contiguity, Rule, Step, Within
from spark_cep.pattern.types import BIGINT, STRING, RecordType
from tests.matcher.runs import (
    END_OF_TIME,
    BothMatchers,
    answers,
    compiled,
    job,
    path_of,
    stream,
    written,
)
from tests.reference.local import LocalJob, Record
from tests.sql_rules import job_of, sql_rule


def ours(pattern: str, feed: str) -> list[str]:
    """What a rule answers to a feed such as ``a@1 b=7@2 wm@9``, as lines like those of Flink."""
    return lines(run(pattern, feed))


def run(pattern: str, feed: str) -> BothMatchers:
    """The job after the feed; ``wm@9`` is a watermark. Offsets count the events."""
    one = job(pattern)
    words = feed.split()
    events = iter(written(" ".join(word for word in words if not word.startswith("wm@"))))
    batch: list[Record] = []
    for word in words:
        if word.startswith("wm@"):
            one.advance(batch, int(word.removeprefix("wm@")))
            batch = []
        else:
            batch.append(next(events))
    one.advance(batch, END_OF_TIME)
    return one


def lines(one: BothMatchers | LocalJob) -> list[str]:
    """Matches, then timeouts, as lines of text."""
    found = [("match", m.steps, m.time) for m in one.outputs.matches]
    found += [("timeout", t.steps, t.deadline) for t in one.outputs.timeouts]
    return [
        f"{kind} {' '.join(f'{name}#{position}' for name, position in path_of(steps))} at {time}"
        for kind, steps, time in found
    ]


def steps(*written_steps: str, within: str = "", **more: str) -> str:
    """A rule over names: ``steps("a", "followed_by b times: 2", within="10 ms")``."""
    text = f"within: {within}\n" if within else ""
    text += "".join(f"{field}: {value}\n" for field, value in more.items())
    text += "pattern:\n"
    for number, step in enumerate(written_steps):
        after, _, rest = step.partition(" ") if number else ("", "", step)
        name, _, options = rest.partition(" ")
        fields = [f"step: {name}", f"where: \"name = '{name}'\""]
        fields += [f"after: {after}"] if after else []
        fields += [options] if options else []
        text += f"  - {{{', '.join(fields)}}}\n"
    return text


def refusal(pattern: str) -> str:
    """The only reason why a rule is refused."""
    with pytest.raises(RuleSetError) as caught:
        load_rules(f"id: r\nkey: key\n{pattern}", "rule.yaml")
    (problem,) = caught.value.problems
    return problem.message


def warnings(pattern: str) -> list[str]:
    """The warnings about a rule, but for those about its state and its timeouts."""
    (loaded,) = load_rules(f"id: r\nkey: key\n{pattern}", "rule.yaml")
    others = (Code.NO_WINDOW, Code.REPEATED_TIMEOUT)
    return [warning.message for warning in loaded.warnings if warning.code not in others]


class TestMatchesAndTimeoutsAreFoundOnce:
    """2.1: a match, and a timeout, is a set of events per step."""

    OPTIONAL = steps("a", "followed_by b optional: true", "followed_by c", within="10 ms")
    LOOP = steps("a", "followed_by b times: 1+", "followed_by c", within="10 ms")

    @pytest.mark.parametrize(
        ("pattern", "feed", "flink"),
        [
            (OPTIONAL, "a@1 wm@99", ["timeout a#0 at 11"]),
            (OPTIONAL, "a@1 x@2 wm@99", ["timeout a#0 at 11"] * 2),
            (OPTIONAL, "a@1 x@2 x@3 wm@99", ["timeout a#0 at 11"] * 2),
            (LOOP, "a@1 b@2 wm@99", ["timeout a#0 b#1 at 11"]),
            (LOOP, "a@1 b@2 x@3 wm@99", ["timeout a#0 b#1 at 11"] * 2),
        ],
    )
    def test_an_irrelevant_event_repeats_no_timeout(
        self, pattern: str, feed: str, flink: list[str]
    ) -> None:
        """Flink writes the timeout twice as soon as an event comes that no step accepts."""
        assert ours(pattern, feed) == list(dict.fromkeys(flink))

    def test_a_timeout_that_flink_repeats(self) -> None:
        """Case event_time-011: ``s0#6`` alone times out twice in Flink, once here."""
        rule = """
within: 14 ms
pattern:
  - {step: s0, times: 0..2, loop: combinations, where: "name = 'c'"}
  - {step: s1, after: followed_by_any, times: 1+, optional: true, where: "name = 'd'"}
"""
        feed = (
            "d@6 wm@6 a@12 d@14 wm@14 b@17 d@19 b@18 c@23 wm@22 b@25 a@25 wm@24 b@27 wm@27"
            " a@31 d@32 a@32 wm@1000000"
        )
        flink = [
            "match s1#0 at 6",
            "match s1#0 s1#2 at 14",
            "match s1#2 at 14",
            "match s1#0 s1#2 s1#4 at 19",
            "match s1#2 s1#4 at 19",
            "match s1#4 at 19",
            "match s0#6 at 23",
            "match s1#4 s1#11 at 32",
            "match s0#6 s1#11 at 32",
            "match s1#11 at 32",
            "timeout s1#0 s1#2 s1#4 at 20",
            "timeout s1#2 s1#4 at 28",
            "timeout s1#4 s1#11 at 33",
            "timeout s0#6 at 37",
            "timeout s0#6 s1#11 at 37",
            "timeout s0#6 at 37",
            "timeout s1#11 at 46",
        ]
        assert flink.count("timeout s0#6 at 37") == 2
        assert sorted(ours(rule, feed)) == sorted(set(flink))

    def test_a_match_of_a_group_that_flink_repeats(self) -> None:
        """Case group-008: the last match comes twice in Flink, once here."""
        rule = """
pattern:
  - step: g
    times: 1+
    group:
      - {step: g0, where: "name = 'd' AND price > 1"}
      - {step: g1, after: followed_by_any, where: "name = 'd'"}
  - {step: s9, after: followed_by_any, where: "name = 'a'"}
"""
        feed = "d=9@11 a=2@13 b=3@14 a=7@16 c=7@17 d=8@18 a=7@21 a=9@22 c=5@23 wm@1000000"
        flink = [
            "match g0#0 g1#5 s9#6 at 21",
            "match g0#0 g1#5 s9#7 at 22",
            "match g0#0 g1#5 s9#7 at 22",
        ]
        assert len(set(flink)) == 2
        assert sorted(ours(rule, feed)) == sorted(set(flink))

    def test_a_group_of_optional_steps(self) -> None:
        """Two events, and Flink writes seven matches of which three differ."""
        rule = """
pattern:
  - step: g
    times: 2
    group:
      - {step: a, optional: true, where: "name = 'a'"}
      - {step: b, after: followed_by, optional: true, where: "name = 'b'"}
"""
        flink = [*["match a#0 at 1"] * 2, *["match a#0 b#1 at 2"] * 3, *["match b#1 at 2"] * 2]
        assert sorted(ours(rule, "a@1 b@2 wm@99")) == sorted(set(flink))

    def test_a_group_that_not_next_ends(self) -> None:
        """Flink writes ``a#0 a#1`` at 3 and, after one more event, again at 4."""
        rule = """
within: 20 ms
pattern:
  - {step: g, times: 1+, group: [{step: a, where: "name = 'a'"}]}
  - {step: n, after: not_next, where: "name = 'n'"}
"""
        flink = ["a#0 at 2", "a#0 a#1 at 3", "a#1 at 3", "a#0 a#1 at 4", "a#1 at 4"]
        one = run(rule, "a@1 a@2 c@3 x@4 wm@99")
        ids = [match.match_id for match in one.outputs.matches]
        assert len(flink) == 5
        assert len(ids) == len(set(ids)) == 3


class TestDeadlinesAreExact:
    """2.2: timeouts and absence come at their deadline and carry it."""

    SEQUENCE = steps("a", "followed_by b", within="10 ms")
    ABSENCE = steps("a", "not_followed_by b", within="10 ms")
    GAP = steps("a", "followed_by b", within="{gap: 10 ms}")
    ABSENCE_BY_GAP = steps("a", "not_followed_by b", within="{gap: 10 ms}")

    @pytest.mark.parametrize(
        ("feed", "flink"),
        [
            ("a@1 wm@50", "match a#0 at 50"),
            ("a@1 x@30 wm@50", "match a#0 at 30"),
            ("a@1 wm@11 wm@50", "match a#0 at 11"),
        ],
    )
    def test_absence_has_the_time_of_its_deadline(self, feed: str, flink: str) -> None:
        """Flink takes the watermark, or the event, that happened to reveal it."""
        assert int(flink.rpartition(" ")[2]) >= 11
        assert ours(self.ABSENCE, feed) == ["match a#0 at 11"]

    @pytest.mark.parametrize(
        ("pattern", "feed", "flink", "here"),
        [
            (SEQUENCE, "a@1 wm@1 wm@50", ["timeout a#0 at 11"], ["timeout a#0 at 11"]),
            (SEQUENCE, "a@0 wm@0 wm@50", [], ["timeout a#0 at 10"]),
            (SEQUENCE, "a@-20 wm@-20 wm@50", [], ["timeout a#0 at -10"]),
            (ABSENCE, "a@0 wm@0 wm@50", [], ["match a#0 at 10"]),
            (ABSENCE, "a@0 wm@0 wm@50 b@60 wm@99", ["match a#0 at 60"], ["match a#0 at 10"]),
            (ABSENCE, "a@-20 wm@-20 wm@50", [], ["match a#0 at -10"]),
        ],
    )
    def test_starts_at_time_zero_and_before(
        self, pattern: str, feed: str, flink: list[str], here: list[str]
    ) -> None:
        """Flink sets no timer: a silent key never times out, even at the end of input."""
        assert ours(pattern, feed) == here
        assert (flink == here) == feed.startswith("a@1 ")

    @pytest.mark.parametrize(
        ("pattern", "feed", "flink", "here"),
        [
            (GAP, "a@1 wm@1 wm@50 wm@60", [], "timeout a#0 at 11"),
            (GAP, "a@1 wm@1 wm@50 x@70 wm@99", ["timeout a#0 at 11"], "timeout a#0 at 11"),
            (ABSENCE_BY_GAP, "a@1 wm@1 wm@50", [], "match a#0 at 11"),
            (ABSENCE_BY_GAP, "a@1 wm@1 x@60 wm@99", ["match a#0 at 60"], "match a#0 at 11"),
        ],
    )
    def test_gaps_need_no_further_event(
        self, pattern: str, feed: str, flink: list[str], here: str
    ) -> None:
        """Flink sets no timer for a gap: only the key's next event reveals it, if one comes."""
        assert len(flink) == ("x@" in feed)
        assert ours(pattern, feed) == [here]

    @pytest.mark.parametrize(
        ("pattern", "start", "kind"),
        [(SEQUENCE, 0, "timeout"), (GAP, 1, "timeout"), (ABSENCE_BY_GAP, -3, "match")],
    )
    def test_not_a_moment_before(self, pattern: str, start: int, kind: str) -> None:
        """The watermark alone reveals it: at the deadline, and not one millisecond earlier."""
        one = job(pattern)
        one.advance(written(f"a@{start}"), start + 9)
        assert lines(one) == []
        one.advance([], start + 10)
        assert lines(one) == [f"{kind} a#0 at {start + 10}"]


class TestGapHoldsBetweenEveryTwoRepetitions:
    """2.3: ``gap`` also before the last repetition, and inside a loop."""

    @pytest.mark.parametrize(
        ("times", "feed", "flink", "here"),
        [
            ("2", "a@1 a@5 b@50", ["a#0 a#1 b#2"], ["a#0 a#1 b#2"]),
            ("2", "a@1 a@6 b@50", ["a#0 a#1 b#2"], []),
            ("3", "a@1 a@6 a@10 b@50", [], []),
            ("3", "a@1 a@5 a@10 b@50", ["a#0 a#1 a#2 b#3"], []),
            ("2+", "a@1 a@5 a@10 b@11", ["a#0 a#1 a#2 b#3", "a#0 a#1 b#3"], ["a#0 a#1 b#3"]),
            ("1+", "a@1 a@50 b@51", ["a#0 a#1 b#2", "a#0 b#2", "a#1 b#2"], ["a#0 b#2", "a#1 b#2"]),
        ],
    )
    def test_gap(self, times: str, feed: str, flink: list[str], here: list[str]) -> None:
        """Flink forgets it before the last repetition that must be, and from then on."""
        rule = steps(f"a times: {times}, gap: 5 ms", "followed_by b")
        found = [line for line in ours(rule, f"{feed} wm@99") if line.startswith("match")]
        assert sorted(line.split(" ", 1)[1].rpartition(" at ")[0] for line in found) == here
        assert set(here) <= set(flink)


class TestTimeOfAMatch:
    """2.4: a match has the time of the event that completed it."""

    @staticmethod
    def rule(after_match: str) -> str:
        """The ``a`` with another price than the ``b`` holds the match back, for 20 ms."""
        return f"""
within: 20 ms
after_match: {after_match}
pattern:
  - {{step: a, where: "name = 'a'"}}
  - {{step: b, after: followed_by, where: "name = 'b' AND price = LAST(a.price)"}}
"""

    @pytest.mark.parametrize(
        ("feed", "flink"),
        [
            ("wm@99", ["match a#1 b#2 at 99", "timeout a#0 at 21"]),
            ("x@30 wm@99", ["match a#1 b#2 at 30", "timeout a#0 at 21"]),
            ("wm@3 wm@21 wm@99", ["match a#1 b#2 at 21", "timeout a#0 at 21"]),
        ],
    )
    def test_held_back_by_a_strategy(self, feed: str, flink: list[str]) -> None:
        """Flink gives it the time of its release: that of a watermark or of another event."""
        answer = ours(self.rule("skip_past_last_event"), f"a=1@1 a=2@2 b=2@3 {feed}")
        assert answer == ["match a#1 b#2 at 3", flink[1]]
        assert answer[0] != flink[0]

    def test_released_by_another_match(self) -> None:
        """Flink gives both matches the time of the second."""
        flink = ["match a#0 b#3 at 9", "match a#1 b#2 at 9"]
        answer = ours(self.rule("skip_to_next"), "a=1@1 a=2@2 b=2@3 b=1@9 wm@99")
        assert answer == [flink[0], "match a#1 b#2 at 3"]

    def test_it_is_still_held_back(self) -> None:
        """Its time is before its release: nothing is written until the strategy allows it."""
        one = job(self.rule("skip_past_last_event"))
        one.advance(written("a=1@1 a=2@2 b=2@3"), 20)
        assert lines(one) == []
        one.advance([], 21)
        assert lines(one) == ["match a#1 b#2 at 3", "timeout a#0 at 21"]


class TestFailingConditionsAndMeasures:
    """2.5: what fails becomes a dead letter, and the job goes on."""

    #: To a condition that throws on the second of ``a@1 bad@2 b@3``.
    FLINK = "JobExecutionException, caused by IllegalStateException: no price"

    @pytest.mark.parametrize(
        "where",
        ["name = 'b' AND price > 1", "name = 'b' AND price + LAST(a.price) > 1"],
        ids=["on the event", "looking back"],
    )
    def test_failing_condition(self, where: str) -> None:
        """Flink's job ends. Here the event does not match, its place is told, and the next does."""
        assert self.FLINK.startswith("JobExecutionException")
        rule = f"""
pattern:
  - {{step: a, where: "name = 'a'"}}
  - {{step: b, after: followed_by, where: "{where}"}}
"""
        first, bad, good = written("a=1@1 b@2 b=3@3")
        bad = replace(bad, values={**bad.values, "price": "much"})
        one = BothMatchers(job(rule).plan, RecordTypes())
        one.advance([first, bad, good], END_OF_TIME)
        assert lines(one) == ["match a#0 b#2 at 3"]
        (letter,) = one.outputs.dead_letters
        assert (letter.reason, letter.rule_id, letter.step) == ("condition_failed", "r", "b")
        assert letter.at == Coordinates("t", 0, 1)
        condition, _, error = letter.detail.partition(": ")
        assert condition in where
        assert "Error(" in error

    def test_failing_measure(self) -> None:
        """The match is written all the same, with NULL in place of the measure."""
        rule = "emit: {measures: {total: SUM(a.price), last: LAST(a.name)}}\n" + steps("a times: 2")
        first, second = written("a=1@1 a=2@2")
        second = replace(second, values={**second.values, "price": object()})
        # A value that is not of its column's type is refused where types are known.
        one = BothMatchers(compiled(rule), RecordTypes())
        one.advance([first, second], END_OF_TIME)
        assert [match.measures for match in one.outputs.matches] == [{"total": None, "last": "a"}]
        (letter,) = one.outputs.dead_letters
        assert (letter.reason, letter.rule_id) == ("measure_failed", "r")
        assert (letter.at, letter.detail.split(":")[0]) == (Coordinates("t", 0, 1), "total")


class TestTimeoutsSayWhetherTheyHadMatched:
    """2.6: ``already_matched``."""

    @pytest.mark.parametrize(
        ("pattern", "feed", "flink", "already_matched"),
        [
            (
                steps("a", "followed_by b optional: true", within="10 ms"),
                "a@1 wm@99",
                ["match a#0 at 1", "timeout a#0 at 11"],
                True,
            ),
            (
                steps("a", "followed_by b times: 2+", within="10 ms"),
                "a@1 b@2 b@3 wm@99",
                ["match a#0 b#1 b#2 at 3", "timeout a#0 b#1 b#2 at 11"],
                True,
            ),
            (
                steps("a", "followed_by b times: 2+", within="10 ms"),
                "a@1 b@2 wm@99",
                ["timeout a#0 b#1 at 11"],
                False,
            ),
        ],
    )
    def test_already_matched(
        self, pattern: str, feed: str, flink: list[str], already_matched: bool
    ) -> None:
        """Flink's timeout of a loop that had matched looks like that of a sequence that had not."""
        assert ours(pattern, feed) == flink
        (timeout,) = run(pattern, feed).outputs.timeouts
        assert timeout.already_matched is already_matched


class TestRefused:
    """2.8: what Flink accepts and then does otherwise."""

    @pytest.mark.parametrize("position", ["first", "middle"])
    def test_a_window_on_a_group(self, position: str) -> None:
        """Flink drops it: a group within 5 ms takes ``a@2 b@30``."""
        flink = {"first": "match a#0 b#1 c#2 at 31", "middle": "match s#0 a#1 b#2 c#3 at 31"}
        assert flink[position].endswith("at 31")
        start = "" if position == "first" else "  - {step: s, where: \"name = 's'\"}\n"
        after = "" if position == "first" else "    after: followed_by\n"
        rule = f"""
pattern:
{start}  - step: g
{after}    within: 5 ms
    group:
      - {{step: a, where: "name = 'a'"}}
      - {{step: b, after: followed_by, where: "name = 'b'"}}
  - {{step: c, after: followed_by, where: "name = 'c'"}}
"""
        assert refusal(rule) == "unknown key `within`"

    @pytest.mark.parametrize(
        ("after", "times", "flink"),
        [
            # The `n` between does not forbid the match.
            ("not_followed_by", "1", {"a@1 n@2 b@3": ["match a#0 b#2 at 3"]}),
            # No match: the group is pending, and nothing says that it never comes round.
            ("not_next", "2", {"a@1 a@2": ["timeout a#0 a#1 at 51", "timeout a#1 at 52"]}),
        ],
    )
    def test_not_as_the_last_of_a_group(
        self, after: str, times: str, flink: dict[str, list[str]]
    ) -> None:
        """Flink forgets it, or never comes to the next round."""
        assert flink
        follows = (
            "  - {step: b, after: followed_by, where: \"name = 'b'\"}\n" if times == "1" else ""
        )
        rule = f"""
within: 50 ms
pattern:
  - step: g
    times: {times}
    group:
      - {{step: a, where: "name = 'a'"}}
      - {{step: n, after: {after}, where: "name = 'n'"}}
{follows}"""
        assert refusal(rule) == (
            "the NOT step `n` is the last of the group `g`, after which something follows"
        )

    @pytest.mark.parametrize(
        ("within", "message"),
        [
            ("0 ms", "`within` is 0 ms"),
            ("{max: 0 ms}", "`within` is 0 ms"),
            ("{gap: 0 ms}", "`within.gap` is 0 ms"),
            ("-5 ms", "`within`: `-5 ms` is not a duration"),
        ],
    )
    def test_a_window_of_nothing(self, within: str, message: str) -> None:
        """To Flink it is no window: with each of them ``a@1 b@50`` matches."""
        flink = ["match a#0 b#1 at 50"]
        assert refusal(steps("a", "followed_by b", within=within)).startswith(message)
        assert ours(steps("a", "followed_by b"), "a@1 b@50 wm@99") == flink

    @pytest.mark.parametrize("strategy", ["skip_to_first", "skip_to_last"])
    def test_a_not_step_to_skip_to(self, strategy: str) -> None:
        """Flink skips nothing, or, with an error on a miss, ends the job at the first match."""
        flink = ["match a#0 b#2 at 3", "match a#1 b#2 at 3"]
        not_between = ("a", "not_followed_by n", "followed_by b")
        for target in (f"{{{strategy}: n}}", f"{{{strategy}: n, on_miss: error}}"):
            rule = steps(*not_between, within="50 ms", after_match=target)
            assert refusal(rule) == "the NOT step `n` has no event to skip to"
        assert ours(steps(*not_between), "a@1 a@2 b@3 wm@99") == flink

    @pytest.mark.parametrize(
        "fields", ["greedy: true, loop: combinations", "loop: combinations, greedy: true"]
    )
    @pytest.mark.parametrize("times", ["1+", "1..3", "2"])
    def test_greedy_with_combinations(self, fields: str, times: str) -> None:
        """Flink refuses it in one order of calls. In the other it gives what neither says: the
        greedy loop alone gives the first of these, combinations alone give four."""
        flink = {
            "greedy().allowCombinations()": ["match a#0 b#1 b#2 b#3 c#4", "match a#0 b#1 b#3 c#4"],
            "allowCombinations().greedy()": "Option not applicable to FollowedByAny pattern",
        }
        rule = steps("a", f"followed_by b times: {times}, {fields}", "followed_by c")
        assert refusal(rule) == "`greedy` does not go with `loop: combinations` on `b`"
        events = "a@1 b@2 b@3 b@4 c@5 wm@99"
        greedy = ours(steps("a", "followed_by b times: 1+, greedy: true", "followed_by c"), events)
        assert [line.rpartition(" at ")[0] for line in greedy] == (
            flink["greedy().allowCombinations()"][:1]
        )

    @pytest.mark.parametrize("greedy_first", [True, False])
    def test_greedy_with_combinations_in_python(self, greedy_first: bool) -> None:
        """Here, unlike in Flink, the order of the calls does not matter."""
        loop = Pattern.begin("a").where("name = 'a'").one_or_more()
        both = loop.greedy().allow_combinations()
        if not greedy_first:
            both = loop.allow_combinations().greedy()
        with pytest.raises(RuleSetError) as caught:
            both.followed_by("b").rule("r", key="key")
        assert [problem.message for problem in caught.value.problems] == [
            "`greedy` does not go with `loop: combinations` on `a`"
        ]


class TestWarnedAbout:
    """2.8: what runs, but may not do what its author thinks."""

    def test_greedy_on_the_last_step(self) -> None:
        """In Flink, and here, the answers are those without ``greedy``."""
        flink = ["match a#0 b#1 at 2", "match a#0 b#1 b#2 at 3"]
        plain = steps("a", "followed_by b times: 1+", within="10 ms")
        greedy = plain.replace("times: 1+", "times: 1+, greedy: true")
        feed = "a@1 b@2 b@3 wm@9"
        found = [line for line in ours(greedy, feed) if line.startswith("match")]
        assert found == flink
        assert ours(greedy, feed) == ours(plain, feed)
        assert warnings(plain) == []
        assert warnings(greedy) == ["`greedy` has no effect on `b`: nothing follows it"]

    def test_a_skip_strategy_without_window(self) -> None:
        """In Flink, and here, a match waits for an earlier start for ever."""
        flink: list[str] = []
        rule = TestTimeOfAMatch.rule("skip_past_last_event")
        endless = rule.replace("within: 20 ms\n", "")
        assert ours(endless, "a=1@1 a=2@2 b=2@3 x@9000 wm@99999") == flink
        assert warnings(rule) == []
        assert warnings(endless) == [
            (
                "`skip_past_last_event` without window: an unfinished earlier partial match holds"
                " matches back"
            )
        ]

    def test_a_loop_without_window_or_until(self) -> None:
        """Its partial matches grow with every event, until a limit drops some. With a window, or
        with events that end the loop, they do not."""
        rule = "limits: {partial_matches: 20}\n"
        rule += steps("a times: 1+, loop: consecutive")
        stream = " ".join("a" for _ in range(100))
        ended = rule.replace("consecutive", "consecutive, until: \"name = 'u'\"")
        tries = [
            (rule, stream, True),
            ("within: 3 ms\n" + rule, stream, False),
            (ended, stream.replace("a a a", "a u x"), False),
        ]
        for text, events, limited in tries:
            one = run(text, events)
            assert bool(one.outputs.dead_letters) is limited
            assert bool(warnings(text)) is limited
        assert warnings(rule) == [
            (
                "the loop `a` has neither a window nor `until`: its partial matches stay,"
                " with ever more events, until `limits.work` or another limit drops them"
            )
        ]

    def test_many_followed_by_any_over_loops(self) -> None:
        """Matches multiply with every event, and do not with ``followed_by``."""
        rule = steps("a times: 1+", "followed_by_any b", "followed_by_any c", within="1 minute")
        plain = rule.replace("followed_by_any", "followed_by")
        few, many = "a a b b c c", "a a a b b b c c c"
        assert len(ours(rule, many)) > 3 * len(ours(rule, few))
        assert len(ours(rule, many)) > 4 * len(ours(plain, many))
        assert warnings(plain) == []
        assert warnings(rule) == [
            (
                "`followed_by_any` on `b`, `c` together with a loop: partial matches multiply with"
                " every event that fits"
            )
        ]


class TestNotThatGivesWay:
    """Not a difference, but warned about as those of 2.8 are: a ``not_followed_by`` that another
    NOT step leaves without effect."""

    FEEDS = ("a@1 c@2", "a@1 n@2 c@3", "a@1 m@2 c@3", "a@1 x@2 n@3 c@4", "a@1 x@2 m@3 c@4")

    @pytest.mark.parametrize(
        ("nots", "flink", "void"),
        [
            (("not_followed_by n", "not_next m"), (True, True, False, True, True), True),
            (("not_followed_by n", "not_followed_by m"), (True, *[False] * 4), False),
            (("not_next n", "not_followed_by m"), (True, False, False, True, False), False),
            (("not_next n", "not_next m"), (True, False, False, True, True), False),
        ],
    )
    def test_two_not_steps(
        self, nots: tuple[str, str], flink: tuple[bool, ...], void: bool
    ) -> None:
        """Which of the feeds match in Flink; only before ``not_next`` an ``n`` never forbids."""
        rule = steps("a", *nots, "followed_by c", within="50 ms")
        found = [any(line.startswith("match") for line in ours(rule, f)) for f in self.FEEDS]
        assert tuple(found) == flink
        assert bool(warnings(rule)) is void is (flink[1] and flink[3])

    def test_at_the_end_of_the_pattern(self) -> None:
        """In Flink, and here, only the last of two ``not_followed_by`` forbids there."""
        rule = steps("a", "not_followed_by n", "not_followed_by m", within="50 ms")
        assert [bool(ours(rule, f)) for f in ("a@1", "a@1 n@2", "a@1 m@2")] == [True, True, False]
        assert warnings(rule) == [
            ("`n` has no effect: the NOT step `m` comes after it with nothing to take between them")
        ]

    @pytest.mark.parametrize(
        ("repeated", "between"),
        [
            (("a", "not_followed_by n"), False),
            (("a times: 2", "not_followed_by n"), True),
            (("a times: 2+", "not_followed_by n"), True),
            (("a times: 2, loop: consecutive", "not_followed_by n"), False),
            (("a times: 2", "not_next n"), False),
            (("a times: 2", "not_next m", "not_followed_by n"), False),
        ],
    )
    def test_between_repetitions(self, repeated: tuple[str, ...], between: bool) -> None:
        """Behind a step with ``times`` an ``n`` between two repetitions forbids, too."""
        rule = steps(*repeated, "followed_by c", within="50 ms")
        feed = "a@1 c@4" if repeated[0] == "a" else "a@1 n@2 a@3 a@4 c@5"
        matched = any(line.startswith("match a#0") for line in ours(rule, feed))
        consecutive = "consecutive" in repeated[0]
        assert matched is not (between or consecutive)
        assert any("between two repetitions" in each for each in warnings(rule)) is between

    @pytest.mark.parametrize("wheres", [("b", "c"), ("c", "b"), ("a", "c"), ("b", "b")])
    @pytest.mark.parametrize(
        ("before", "behind"),
        [
            ("a", "c"),
            ("a", ""),
            ("a, next b", "any c"),
            ("a", "c optional"),
            ("group a, b", "c"),
            ("group a, b", ""),
        ],
    )
    @pytest.mark.slow
    def test_what_is_warned_about_has_no_effect(
        self, before: str, behind: str, wheres: tuple[str, str]
    ) -> None:
        """Every stream of four events gives the same without the step that is warned about."""
        for nots in product((Contiguity.NOT_FOLLOWED_BY, Contiguity.NOT_NEXT), repeat=2):
            n, m = (Step(s, k, named(w)) for s, k, w in zip("nm", nots, wheres, strict=True))
            head, tail = HEADS[before], TAILS[behind]
            with_both = Rule("r", 1, (*head, n, m, *tail), within=Within(max_ms=9))
            without = replace(with_both, pattern=(*head, m, *tail))
            same = answers(with_both, STREAMS) == answers(without, STREAMS)
            warned = any(finding.step == "n" for finding in cautions(with_both))
            assert same or not warned
            if nots[0] is Contiguity.NOT_FOLLOWED_BY and (
                nots[1] is Contiguity.NOT_NEXT or not tail
            ):
                assert warned

    @pytest.mark.parametrize("times", ["2", "1+", "1..2"])
    def test_behind_repetitions_it_holds_between_them(self, times: str) -> None:
        """There it has an effect, and the warning is another one."""
        nots = ("not_followed_by n", "not_next m")
        rule = steps(f"a times: {times}", *nots, "followed_by c", within="50 ms")
        without = steps(f"a times: {times}", nots[1], "followed_by c", within="50 ms")
        feed = "a@1 n@2 a@3 c@4"
        assert ours(rule, feed) != ours(without, feed)
        assert warnings(rule) == [
            "`n` also forbids an event between two repetitions of `a`, not only behind the last"
        ]

    def test_inside_a_group(self) -> None:
        """A group's own members are looked at; what follows the group does not matter."""
        group = """
within: 9 ms
pattern:
  - step: g
    times: 2
    group:
      - {step: a}
      - {step: n, after: not_followed_by, where: "name = 'n'"}
      - {step: m, after: not_next, where: "name = 'm'"}
      - {step: b, after: followed_by}
"""
        (warning,) = warnings(group)
        assert warning.startswith("`n` has no effect: the NOT step `m`")


class TestClausesOfFlinkSql:
    """Flink SQL makes a pattern of Flink CEP of MATCH_RECOGNIZE: variables are ``next``, loops
    ``consecutive``, and ``greedy`` unless they are reluctant, or ``?``. That pattern, as a rule of
    steps, gives what Flink gives; the statement gives what the standard says."""

    @staticmethod
    def flink(feed: str, *written_steps: str) -> list[str]:
        """The matches of Flink's pattern."""
        head = "within: 50 ms\nafter_match: skip_past_last_event"
        rule = f"{head}\npattern: [{', '.join(written_steps)}]"
        return [line for line in ours(rule, feed) if line.startswith("match")]

    @staticmethod
    def standard(feed: str, pattern: str) -> list[str]:
        """The matches of a statement."""
        pattern, _, conditions = pattern.partition(" DEFINE ")
        clause = f"PATTERN ({pattern}) WITHIN INTERVAL '0.050' SECOND DEFINE {conditions}"
        one = job_of(
            [sql_rule(f"SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY key {clause})")], _EVENT
        )
        events = " ".join(word for word in feed.split() if not word.startswith("wm@"))
        one.advance([replace(each, input="t") for each in written(events)], END_OF_TIME)
        return [line for line in lines(one) if line.startswith("match")]

    def test_loops_give_nothing_back(self) -> None:
        """A row that fits loop and next variable belongs to the loop, also if that ends it all."""
        feed = "a=19@1 a=17@2 a=13@3 a=20@4 wm@60"
        down = '{step: down, where: "price <= 20", times: 2+, greedy: true, loop: consecutive}'
        up = '{step: up, where: "price > LAST(down.price)", after: next}'
        statement = "down{2,} up DEFINE down AS price <= 20, up AS price > LAST(down.price)"
        assert self.flink(feed, down, up) == []
        assert self.standard(feed, statement) == ["match DOWN#0 DOWN#1 DOWN#2 UP#3 at 4"]
        assert self.standard(feed, f"{statement} AND NOT price <= 20") == []

    def test_optional_is_not_greedy(self) -> None:
        """``d?`` leaves a row to the next variable; here ``d??`` says that."""
        feed = "a=1@1 a=2@2 a=3@3 wm@60"
        a, b = '{step: a, where: "price = 1"}', '{step: b, where: "price > 1", after: next}'
        d = '{step: d, where: "price < 5", after: next, optional: true}'
        defines = "DEFINE a AS price = 1, d AS price < 5, b AS price > 1"
        assert self.flink(feed, a, d, b) == ["match a#0 b#1 at 2"]
        assert self.standard(feed, f"a d? b {defines}") == ["match A#0 D#1 B#2 at 3"]
        assert self.standard(feed, f"a d?? b {defines}") == ["match A#0 B#1 at 2"]

    def test_within_at_exactly_the_interval(self) -> None:
        """No difference: such a row is too late in both."""
        a, b = '{step: a, where: "price = 1"}', '{step: b, where: "price > 1", after: next}'
        statement = "a b DEFINE a AS price = 1, b AS price > 1"
        for time, matched in ((50, True), (51, False)):
            feed = f"a=1@1 a=2@{time} wm@90"
            assert bool(self.flink(feed, a, b)) is matched
            assert bool(self.standard(feed, statement)) is matched


_EVENT = RecordType({"key": STRING, "name": STRING, "price": BIGINT})


def named(letter: str) -> Expression:
    """The condition on the name."""
    return parse(f"name = '{letter}'")


_A = Step("a", None, named("a"))
_B = Step("b", Contiguity.FOLLOWED_BY, named("b"))
_C = Step("c", Contiguity.FOLLOWED_BY, named("c"))
HEADS = {
    "a": (_A,),
    "a, next b": (_A, replace(_B, after=Contiguity.NEXT)),
    "group a, b": (Step("g", None, group=(_A, _B)),),
}
TAILS = {
    "": (),
    "c": (_C,),
    "any c": (replace(_C, after=Contiguity.FOLLOWED_BY_ANY),),
    "c optional": (replace(_C, optional=True),),
}
STREAMS = {"".join(letters): stream("".join(letters)) for letters in product("abc", repeat=4)}
