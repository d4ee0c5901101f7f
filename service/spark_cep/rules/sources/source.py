"""Sources of rules, as the job sees them: whole snapshots of entries with rules in them.

The content of a source counts, not its history. A snapshot is one change: all of
it runs from the same batch on. An entry (a file, a record, a row) with a problem is there with its
problem, and hides no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Protocol

from spark_cep.documents.reading import MOST_CHARACTERS
from spark_cep.errors import Problem, RuleSetError, RulesUnavailableError
from spark_cep.pattern.document import loading as document
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.document.sql_file import SUFFIX as SQL_SUFFIX
from spark_cep.rules.rule_set import RuleFile

#: In one source.
MOST_ENTRIES = 10_000
#: In one text.
MOST_BYTES = 4 * MOST_CHARACTERS


class RuleSource(Protocol):
    """A place that holds rules. Used by one thread at a time."""

    @property
    def name(self) -> str:
        """Its name in messages; holds no secrets."""

    def read(self) -> Sequence[RuleFile] | None:
        """All entries that there are now. ``None``: the same as those given last, or something that
        is still being changed. RuleSetError when the source cannot be read or does not answer; the
        next read may succeed."""

    def close(self) -> None:
        """Let go of connections, without waiting for a read that still goes on in another thread.
        Nothing is read after it."""


class SourceEntries:
    """Rules and problems of texts. What was read before is not read again, as long as it is in the
    newest snapshot or the one before: a text may hold a thousand rules."""

    def __init__(self) -> None:
        self._newest: dict[tuple[object, ...], RuleFile] = {}
        self._before: dict[tuple[object, ...], RuleFile] = {}

    def next_snapshot(self) -> None:
        """Another one begins."""
        self._before, self._newest = self._newest, {}

    def file(self, text: str, name: str) -> RuleFile:
        """See :func:`rule_file`."""
        return self._kept(rule_file, text, name)

    def entry(self, text: str, name: str, rule: str, version: int | None = None) -> RuleFile:
        """See :func:`rule_entry`."""
        return self._kept(rule_entry, text, name, rule, version)

    def _kept(self, read: Callable[..., RuleFile], *given: object) -> RuleFile:
        file = self._newest.get(given) or self._before.get(given) or read(*given)
        self._newest[given] = file
        return file


def rule_file(text: str, name: str) -> RuleFile:
    """The rules and problems of a file's text."""
    in_sql = PurePath(name).suffix.lower() == SQL_SUFFIX
    examine = document.examine_sql_file if in_sql else document.examine_rules
    try:
        rules, problems = examine(text, name)
    except RuleSetError as error:
        return RuleFile(name, (), tuple(error.problems))
    return RuleFile(name, tuple(rules), tuple(problems))


def rule_entry(text: str, name: str, rule: str, version: int | None = None) -> RuleFile:
    """The rule and problems of an entry that stands for one rule: its text has this id, and this
    version where one is given, or has neither."""
    given: dict[str, object] = {"id": rule}
    if version is not None:
        given["version"] = version
    try:
        rules, problems = document.examine_rules(text, name, given)
    except RuleSetError as error:
        return RuleFile(name, (), tuple(error.problems), rule)
    if not problems:
        problems = [problem for one in rules for problem in _others(one, given)]
    return RuleFile(name, tuple(rules), tuple(problems), rule)


def _others(one: LoadedRule, given: Mapping[str, object]) -> Iterator[Problem]:
    for key, value in given.items():
        found = getattr(one.rule, key)
        if found != value:
            message = f"the {key} is {found}, and the entry stands for {value}"
            yield one.places.problem(message, (key,), allowed=f"`{key}: {value}`, or no `{key}`")


def decoded(content: bytes, name: str, what: str) -> str:
    """The text of ``content``, which messages call ``what``. RuleSetError when it is too large, or
    not UTF-8."""
    if len(content) > MOST_BYTES:
        raise too_large(name, what)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the {what} is not UTF-8: byte {error.start} cannot be read"
        raise RuleSetError([Problem(message, name, allowed="text in UTF-8")]) from error


def too_large(name: str, what: str) -> RuleSetError:
    """The error of what is longer than any text that is read."""
    allowed = f"at most {MOST_CHARACTERS:,} characters in one {what}"
    return RuleSetError([Problem(f"the {what} is too large", name, allowed=allowed)])


def check_count(count: int, what: str, name: str) -> None:
    """RuleSetError when a source has more entries, which messages call ``what``, than are read."""
    if count > MOST_ENTRIES:
        message = f"the source holds {count:,} {what}"
        raise RuleSetError([Problem(message, name, allowed=f"at most {MOST_ENTRIES:,}")])


def unavailable(reason: str, name: str) -> RulesUnavailableError:
    """The error of a source that does not answer, and may do so later."""
    return RulesUnavailableError(not_read(reason, name).problems)


def not_read(reason: str, name: str, allowed: str | None = None) -> RuleSetError:
    """The error of a source that cannot be read."""
    return RuleSetError([Problem(f"the rules cannot be read: {reason}", name, allowed=allowed)])
