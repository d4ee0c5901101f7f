"""The codes of warnings about rules. A code keeps its name; ``docs/checks.md`` explains each with
an example."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Code(StrEnum):
    """A code, and what it ``means`` in a few words. ``needs_types``: it is found only where the
    types of the events are known."""

    means: str
    needs_types: bool

    def __new__(cls, code: str, means: str, needs_types: bool = False) -> Self:
        """A code with its meaning."""
        made = str.__new__(cls, code)
        made._value_ = code
        made.means, made.needs_types = means, needs_types
        return made

    # Conditions.
    COMPARED_WITH_NULL = "compared-with-null", "A comparison with NULL, which is never true"
    REVERSED_BETWEEN = "reversed-between", "BETWEEN whose first bound is above the second"
    NEVER_TRUE = "never-true", "A condition, or a part of it, that no event can meet"
    UNKNOWN_SYMBOL = "unknown-symbol", "A text that is not a symbol of the column's enum", True
    UNTAKEN_STEP = "untaken-step", "A look-back to a step that has no events yet"
    MISSPELT_STEP = "misspelt-step", "A record whose name is similar to the name of a step"
    COMPARED_WITH_ITSELF = "compared-with-itself", "A value of a row that is compared with itself"
    QUOTED_TEXT = "quoted-text", "A name in double quotes where a text is probably meant"
    # Steps that work otherwise than they look.
    SWALLOWED_STEP = "swallowed-step", "A step whose events the greedy loop before it takes"
    GREEDY_LAST = "greedy-last", "`greedy` on a step that nothing follows"
    VOID_NOT = "void-not", "A NOT step that has no effect because of another NOT step"
    NOT_THEN_SAME = "not-then-same", "A NOT step that forbids the events of the next step"
    NOT_OWN_REPETITIONS = (
        "not-own-repetitions", "A NOT step that forbids the repetitions of the step before it"
    )  # fmt: skip
    NOT_BETWEEN = "not-between", "A NOT step that also holds between repetitions"
    # What is held, how long, and what it costs.
    NO_KEY = "no-key", "A rule without a key: one partition does all the work"
    NO_WINDOW = "no-window", "A partial match that may wait for ever"
    ENDLESS_LOOP = "endless-loop", "A loop with neither a window nor `until`"
    SKIP_WITHOUT_WINDOW = (
        "skip-without-window", "A skip strategy that may hold matches back for ever"
    )  # fmt: skip
    ENDLESS_PATTERN = "endless-pattern", "A pattern that only the end of the input decides"
    LATE_RESULT = "late-result", "A result that waits for a later row"
    MANY_COMBINATIONS = "many-combinations", "Partial matches that multiply with each event"
    MUCH_WORK = "much-work", "A statement that reaches `limits.work` after few rows"
    REPEATED_TIMEOUT = "repeated-timeout", "A timeout after each match"
    # About the comments that allow a code.
    UNUSED_ALLOW = "unused-allow", "A comment that allows a warning that the rule does not have"
    ALLOW_WITHOUT_REASON = "allow-without-reason", "A comment that allows a code without a reason"
    UNKNOWN_CODE = "unknown-code", "A comment that allows a code that does not exist"
