"""Checks that refuse a rule, whatever front end its tree comes from.

Each check is one small function that yields findings; a finding names its part by the path that
``places`` turns into a place in a text. What Flink CEP refuses is refused here, and also what it
accepts and then silently does otherwise: a NOT at the end of a group that something follows, a
window of nothing, a skip target that cannot have events, ``greedy`` with ``combinations``.

Optional after greedy is the one check that Flink applies by how the rule is written: it refuses
``optional`` there, and accepts the same step as ``times: 0..2``. A tree has one form for both, so
what ``0..n`` can say passes here, and the document refuses the word.

The checks of names, references and numbers are in ``references``; warnings are in ``cautions``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from spark_cep.documents.places import Places
from spark_cep.errors import Problem
from spark_cep.pattern.checks.cautions import cautions
from spark_cep.pattern.checks.findings import Finding, Placed, is_last_event, place_steps
from spark_cep.pattern.checks.references import check_references
from spark_cep.pattern.checks.sql_rule import PATH, check_sql, warn_sql
from spark_cep.pattern.tree import Contiguity, Loop, Rule, Skip, Step, Within

MOST_REPETITIONS = 1_000
"""Most repetitions that ``times`` may name; a loop without end is not counted."""

MOST_STATES = 10_000
"""Most steps of a pattern once ``times`` and groups are written out."""

MOST_GROUP_DEPTH = 10
"""Most groups inside one another."""


def validate(rule: Rule) -> tuple[Finding, ...]:
    """Every reason to refuse the rule, and every warning, in the order of the checks."""
    if rule.query is not None:
        return (*check_sql(rule), *warn_sql(rule))
    return (*refusals(rule), *cautions(rule))


def refusals(rule: Rule) -> Iterator[Finding]:
    """Every reason to refuse a rule with steps."""
    for placed in place_steps(rule.pattern):
        for check in _STEP_CHECKS:
            yield from check(placed)
    for rule_check in _RULE_CHECKS:
        yield from rule_check(rule)
    yield from check_references(rule)


def check_rule(rule: Rule, places: Places | None = None) -> tuple[list[Problem], list[Problem]]:
    """The reasons to refuse a rule, and the warnings about it; at its ``places`` if it has some."""
    if places is None:
        steps = {placed.path: placed.step.name for placed in place_steps(rule.pattern)}
        texts = {} if rule.query is None else {PATH: rule.query.text}
        places = Places(rule.source or "<rule>", (), steps=steps, rule=rule.id, texts=texts)
    return place_findings(validate(rule), places)


def place_findings(
    findings: Iterable[Finding], places: Places
) -> tuple[list[Problem], list[Problem]]:
    """Findings as problems and warnings at their places."""
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for finding in findings:
        (warnings if finding.warning else problems).append(
            places.problem(
                finding.message,
                finding.path,
                allowed=finding.allowed,
                at=finding.at,
                offsets=finding.offsets,
                code=finding.code,
                fix=finding.fix,
                related=finding.related,
            )
        )
    return problems, warnings


def check_after(placed: Placed) -> Iterator[Finding]:
    """``after`` is absent on the first step of a pattern or group, and stands on all others."""
    step = placed.step
    where = "group" if placed.parents else "pattern"
    if placed.previous is None and step.after is not None:
        yield placed.finding(
            f"`{step.name}` is the first step of its {where} and has `after: {step.after.value}`",
            "after",
            "no `after` on a first step; a NOT step needs a step before it",
        )
    if placed.previous is not None and step.after is None:
        yield placed.finding(
            f"`{step.name}` does not say how it stands to `{placed.previous.name}`",
            "step",
            "`after` on every step but the first: `next`, `followed_by`, `followed_by_any`,"
            " `not_next` or `not_followed_by`",
        )


def check_not_step(placed: Placed) -> Iterator[Finding]:
    """A NOT step is one plain condition."""
    step = placed.step
    if not step.negative:
        return
    given = {
        "times": step.times is not None,
        "loop": step.loop is not Loop.RELAXED,
        "gap": step.gap_ms is not None,
        "greedy": step.greedy,
        "optional": step.optional and step.times is None,
        "until": step.until is not None,
        "group": step.group is not None,
    }
    for field in (name for name, present in given.items() if present):
        yield placed.finding(
            f"`{field}` does not apply to the NOT step `{step.name}`",
            field,
            "`where` and `of_type` on a NOT step; put repetitions on the steps around it",
        )


def check_optional_before_not(placed: Placed) -> Iterator[Finding]:
    """No optional step or group stands directly before a NOT step."""
    step, previous = placed.step, placed.previous
    if step.negative and previous is not None and previous.optional:
        yield placed.finding(
            f"the NOT step `{step.name}` comes directly after the optional step `{previous.name}`",
            "after",
            "a step that is always there before a NOT step; write two rules, one with and one"
            f" without `{previous.name}`",
        )


def check_optional_after_greedy(placed: Placed) -> Iterator[Finding]:
    """No optional step comes right after a greedy one, unless ``times: 0..n`` says the same."""
    step, previous = placed.step, placed.previous
    if previous is None or not previous.greedy or not step.optional or step.negative:
        return
    times = step.times
    if times is not None and times.minimum == 1 and times.maximum is not None:
        return
    yield placed.finding(*optional_after_greedy(step.name, previous.name))


def optional_after_greedy(step: str, previous: str) -> tuple[str, str, str]:
    """Message, field and what is allowed, for an optional step right after a greedy one."""
    return (
        f"the optional step `{step}` comes right after the greedy step `{previous}`",
        "optional",
        f"a step that is always there after a greedy one; or `{previous}` without `greedy`",
    )


def check_times(placed: Placed) -> Iterator[Finding]:
    """``times`` is positive, not reversed, and not beyond what a plan may hold."""
    times, name = placed.step.times, placed.step.name
    if times is None or placed.step.negative:
        return
    if times.minimum < 1 or (times.maximum is not None and times.maximum < 1):
        yield placed.finding(
            f"`times` of `{name}` allows no event", "times", "a number from 1, or `0..n` from n = 1"
        )
    elif times.maximum is not None and times.maximum < times.minimum:
        yield placed.finding(
            f"`times` of `{name}` is reversed: from {times.minimum} to {times.maximum}",
            "times",
            "the smaller number first, such as `2..4`",
        )
    elif max(times.minimum, times.maximum or 0) > MOST_REPETITIONS:
        yield placed.finding(
            f"`times` of `{name}` is too large", "times", f"at most {MOST_REPETITIONS:,} or `n+`"
        )


_NOT_ON_GROUPS = {
    "greedy": "`greedy` on a step that repeats",
    "gap": "`gap` on a step that repeats; or `within: {gap: …}` for the whole rule",
}


def check_repetition(placed: Placed) -> Iterator[Finding]:
    """``loop``, ``greedy`` and ``gap`` need a step that repeats, the latter two no group."""
    step = placed.step
    if step.negative:
        return
    repeated = {"greedy": step.greedy, "gap": step.gap_ms is not None}
    for field in (name for name, present in repeated.items() if present):
        if step.group is not None:
            message = f"`{field}` does not apply to the group `{step.name}`"
            yield placed.finding(message, field, _NOT_ON_GROUPS[field])
        elif step.times is None:
            message = f"`{field}` on `{step.name}`, which does not repeat"
            yield placed.finding(message, field, f"`{field}` together with `times`")
    if step.loop is not Loop.RELAXED and step.times is None:
        yield placed.finding(*loop_on_single(step.name, step.loop.value))
    elif step.greedy and step.group is None and step.loop is Loop.COMBINATIONS:
        yield placed.finding(
            f"`greedy` does not go with `loop: combinations` on `{step.name}`",
            "greedy",
            "`greedy` with `loop: relaxed` or `consecutive`; or `combinations` without `greedy`",
        )


def loop_on_single(step: str, loop: str) -> tuple[str, str, str]:
    """Message, field and what is allowed, for ``loop`` on a step that does not repeat."""
    return (
        f"`loop: {loop}` on `{step}`, which does not repeat",
        "loop",
        "`loop` together with `times`",
    )


def check_until(placed: Placed) -> Iterator[Finding]:
    """``until`` needs a loop without upper bound."""
    step = placed.step
    if step.until is None or step.negative or (step.times is not None and step.times.looping):
        return
    yield placed.finding(
        f"`until` on `{step.name}`, which does not loop",
        "until",
        "`until` with `times` that has no upper bound, such as `1+` or `2+`",
    )


def check_group(placed: Placed) -> Iterator[Finding]:
    """A group has members, and no condition of its own."""
    step = placed.step
    if step.group is None:
        return
    for field in ("where", "of_type"):
        if getattr(step, field) is not None:
            yield placed.finding(
                f"`{field}` does not apply to the group `{step.name}`",
                field,
                "conditions on the steps in the group",
            )
    if not step.group:
        yield placed.finding(f"the group `{step.name}` is empty", "group", "one step or more")
    if len(placed.parents) >= MOST_GROUP_DEPTH:
        yield placed.finding(
            f"the group `{step.name}` lies too deep",
            "group",
            f"at most {MOST_GROUP_DEPTH} groups inside one another",
        )


def check_group_end(placed: Placed) -> Iterator[Finding]:
    """A NOT step is the last member of a group only where nothing follows."""
    step = placed.step
    if not step.negative or not placed.parents or not placed.last or is_last_event(placed):
        return
    yield placed.finding(
        f"the NOT step `{step.name}` is the last of the group `{placed.parents[-1].step.name}`,"
        " after which something follows",
        "after",
        "a NOT step inside a group before another step of it; or behind the group",
    )


def check_absence(rule: Rule) -> Iterator[Finding]:
    """``not_followed_by`` at the end needs a window: it matches at the deadline."""
    if rule.within != Within():
        return
    for placed in place_steps(rule.pattern):
        if placed.step.after is Contiguity.NOT_FOLLOWED_BY and is_last_event(placed):
            yield placed.finding(
                f"`{placed.step.name}` at the end of the pattern has no deadline",
                "after",
                "`within` on the rule, with `not_followed_by` at its end",
            )


def check_window(rule: Rule) -> Iterator[Finding]:
    """A gap is no longer than the window."""
    longest, gap = rule.within.max_ms, rule.within.gap_ms
    if longest is None:
        return
    allowed = "a gap that is no longer than the window from first to last event"
    if gap is not None and gap > longest:
        yield Finding("`within.gap` is longer than `within.max`", ("within", "gap"), allowed)
    for placed in place_steps(rule.pattern):
        if placed.step.gap_ms is not None and placed.step.gap_ms > longest:
            yield placed.finding(
                f"`gap` of `{placed.step.name}` is longer than the window", "gap", allowed
            )


def check_skip(rule: Rule) -> Iterator[Finding]:
    """A skip target is a step of the rule that takes events, outside any group."""
    after = rule.after_match
    to_step = after.strategy in (Skip.TO_FIRST, Skip.TO_LAST)
    path = ("after_match", after.strategy.value)
    if to_step != (after.step is not None):
        wrong = "needs a step" if to_step else f"takes no step, but has `{after.step}`"
        allowed = "`skip_to_first: STEP` or `skip_to_last: STEP`"
        yield Finding(f"`{after.strategy.value}` {wrong}", path, allowed)
    if after.error_on_miss and not to_step:
        message = f"`on_miss` does not apply to `{after.strategy.value}`"
        allowed = "`on_miss` with `skip_to_first` or `skip_to_last`"
        yield Finding(message, ("after_match", "on_miss"), allowed)
    if not to_step or after.step is None:
        return
    targets = [s.name for s in rule.pattern if not s.negative and s.group is None]
    if after.step in targets:
        return
    target = next((p for p in place_steps(rule.pattern) if p.step.name == after.step), None)
    if target is None:
        message = f"there is no step `{after.step}` to skip to"
    elif target.step.negative:
        message = f"the NOT step `{after.step}` has no event to skip to"
    elif target.step.group is not None:
        message = f"`{after.step}` is a group, and has no event of its own to skip to"
    else:
        message = f"`{after.step}` is inside a group, and cannot be skipped to"
    allowed = "a step outside groups that takes events: " + (", ".join(targets) or "none here")
    yield Finding(message, path, allowed)


def check_size(rule: Rule) -> Iterator[Finding]:
    """The pattern has steps, and not too many once repetitions are written out."""
    if not rule.pattern:
        yield Finding("the pattern is empty", ("pattern",), "one step or more")
    states = sum(_written_out(step) for step in rule.pattern)
    if states > MOST_STATES:
        yield Finding(
            f"the pattern has {states:,} steps once repetitions and groups are written out",
            ("pattern",),
            f"at most {MOST_STATES:,}",
        )


def _written_out(step: Step) -> int:
    inner = 1 if step.group is None else sum(_written_out(member) for member in step.group)
    times = step.times
    return inner if times is None else inner * max(times.minimum, times.maximum or 0, 1)


_STEP_CHECKS: tuple[Callable[[Placed], Iterator[Finding]], ...] = (
    check_after,
    check_not_step,
    check_optional_before_not,
    check_optional_after_greedy,
    check_times,
    check_repetition,
    check_until,
    check_group,
    check_group_end,
)

_RULE_CHECKS: tuple[Callable[[Rule], Iterator[Finding]], ...] = (
    check_size,
    check_absence,
    check_window,
    check_skip,
)
