"""Accepts what was found: writes the expectations of cases that failed again, in their files.

Only the block of `expect` is written, at the place that it has in the text; all else of the file,
comments included, stays as it is. An expectation keeps the keys that it had, so that what it did
not compare stays open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from spark_cep.cases.document.loading import Case
from spark_cep.cases.document.shape import NOTHING, ExpectShape, written
from spark_cep.cases.running.case_run import CaseRun
from spark_cep.cases.running.comparing import compared
from spark_cep.cases.running.found import KINDS, FoundResult, found_results
from spark_cep.cases.running.outcome import CaseOutcome
from spark_cep.documents.places import Mark
from spark_cep.errors import ConfigurationError
from spark_cep.pattern.document.sql_file import SUFFIX as SQL_SUFFIX

_EXPECT: Final = "expect"
_WIDTH: Final = 100
_INDENT: Final = 2
#: The keys of results that had none, by kind; `rule` where several rules take part.
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "matches": ("rule", "key", "at", "steps", "measures"),
    "rows": ("rule", "key", "variable", "event", "columns"),
    "timeouts": ("rule", "key", "at", "steps", "measures"),
    "dead_letters": ("event", "reason", "rule", "step"),
    "partial_matches": ("rule", "key", "steps", "until"),
}
_GROUPS: Final = ("steps", "measures", "columns")


def accept(outcomes: Sequence[CaseOutcome]) -> dict[str, int]:
    """Write what was found into the files of cases that failed; returns how many cases were
    accepted, by file. ConfigurationError where a file cannot be written, or where a case could not
    be run."""
    count: dict[str, int] = {}
    by_file: dict[Path, list[CaseOutcome]] = {}
    for each in outcomes:
        if each.run.problem is not None:
            raise ConfigurationError(
                f"{each.case.place}: cannot be accepted, since it was not run to its end",
                [each.run.problem],
            )
        if not each.passed:
            by_file.setdefault(each.suite.file.path, []).append(each)
    for path, several in by_file.items():
        try:
            path.write_text(accepted_text(several), "utf-8", newline="")
        except OSError as error:
            raise ConfigurationError(f"{path}: cannot be written: {error.strerror}") from error
        count[str(path)] = len(several)
    return count


def accepted_text(outcomes: Sequence[CaseOutcome]) -> str:
    """The text of the file that these cases stand in, with what was found as what is expected."""
    text = outcomes[0].suite.file.text
    edits = sorted((_edit(text, each) for each in outcomes), key=lambda edit: -edit.start)
    for edit in edits:
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _expectation(run: CaseRun, *, rule: bool) -> dict[str, Any] | str:
    """All that was found, as an expectation. ``rule``: results name their rule."""
    found = found_results(run)
    wanted = [kind for kind in KINDS if found[kind] and kind != "partial_matches"]
    keys = {
        kind: [name for name in names if rule or name != "rule"] for kind, names in _KEYS.items()
    }
    data = {kind: _results(found[kind], kind, keys.get(kind, [])) for kind in wanted}
    return data or NOTHING


@dataclass(frozen=True)
class _Edit:
    """A piece of a text to be replaced."""

    start: int
    end: int
    text: str


def _edit(text: str, outcome: CaseOutcome) -> _Edit:
    case, places = outcome.case, outcome.case.places
    in_sql = outcome.suite.file.path.suffix.lower() == SQL_SUFFIX
    data = _accepted(outcome)
    key = places.keys[(*case.path, _EXPECT)]
    value = places.values[(*case.path, _EXPECT)]
    lines = _offsets(text)
    start = lines[value.line] + value.column
    end = _end(case, text, lines)
    if _in_braces(text, lines, key):
        return _Edit(start, end, _flow(data))
    start = lines[key.line] + key.column + len(_EXPECT)
    if isinstance(data, str):
        return _Edit(start, end, f": {data}")
    margin = " " * (key.column + _INDENT)
    if in_sql:  # all of it is a comment
        dashes = text.index("--", lines[key.line])
        margin = text[lines[key.line] : dashes + 2] + margin[dashes + 2 - lines[key.line] :]
    block = "".join(f"\n{margin}{line}" for line in _block(data))
    # As the file ends its lines.
    return _Edit(start, end, ":" + block.replace("\n", "\r\n" if "\r\n" in text else "\n"))


def _in_braces(text: str, lines: Sequence[int], key: Mark) -> bool:
    """Return whether the key stands inside `{…}`: other things than blanks and `- ` are before it
    in its line."""
    before = text[lines[key.line] : lines[key.line] + key.column]
    return bool(before.strip(" -"))


def _end(case: Case, text: str, lines: Sequence[int]) -> int:
    """The offset behind the last character of the expectation."""
    here = (*case.path, _EXPECT)
    ends = []
    for path, mark in case.places.values.items():
        opens = text[lines[mark.line] + mark.column :][:1] in ("{", "[")
        # A mapping or list in block style ends, for YAML, where the next token begins.
        if path[: len(here)] == here and (mark.value is not None or opens):
            end_line = min(mark.end_line, len(lines) - 1)
            ends.append(lines[end_line] + (mark.end_column if end_line == mark.end_line else 0))
    return len(text[: max(ends)].rstrip())


def _offsets(text: str) -> list[int]:
    """The offset of each line's beginning."""
    offsets = [0]
    offsets += [place + 1 for place, character in enumerate(text) if character == "\n"]
    return offsets


def _accepted(outcome: CaseOutcome) -> dict[str, Any] | str:
    """The new expectation of a case: its kinds, with the keys that they had."""
    run, expect = outcome.run, outcome.case.shape.expect
    several = len(outcome.suite.rules_of(outcome.case)) > 1
    if not isinstance(expect, ExpectShape):
        return _expectation(run, rule=several)
    found = found_results(run)
    data: dict[str, Any] = {}
    for kind, before in compared(expect).items():
        if kind not in expect.model_fields_set and not found[kind]:
            continue
        keys = [name for name in _KEYS.get(kind, ()) if several or name != "rule"]
        had = [written(each) for each in before] if kind != "late" else []
        if had:
            keys = list(dict.fromkeys(name for each in had for name in each))
        data[kind] = _results(found[kind], kind, keys, had)
    return data


def _results(
    found: Sequence[FoundResult],
    kind: str,
    keys: Sequence[str],
    had: Sequence[Mapping[str, Any]] = (),
) -> list[Any] | str:
    if not found:
        return NOTHING
    if kind == "late":
        return [each.written("event") for each in found]
    return [dict(_result(each, keys, had)) for each in found]


def _result(
    found: FoundResult, keys: Sequence[str], had: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, Any]]:
    for key in keys:
        if key not in _GROUPS:
            if found.has(key):
                yield key, found.written(key)
            continue
        before = {inner for each in had for inner in each.get(key) or ()}
        values = {
            name.partition(".")[2]: found.written(name)
            for name in found.values
            if name.startswith(f"{key}.")
            and (name.partition(".")[2] in before if before else found.value(name) != [])
        }
        if values:
            yield key, values


def _flow(data: object) -> str:
    text = yaml.safe_dump(
        data, default_flow_style=True, allow_unicode=True, sort_keys=False, width=10_000
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _block(data: Mapping[str, Any]) -> list[str]:
    """The lines of an expectation in block style; what fits stands in one line."""
    lines: list[str] = []
    for kind, results in data.items():
        if isinstance(results, str) or kind == "late":
            lines.append(f"{kind}: {_flow(results)}")
            continue
        lines.append(f"{kind}:")
        for result in results:
            inner = [f"{name}: {_flow(value)}" for name, value in result.items()]
            whole = _flow(result)
            if len(whole) <= _WIDTH // 2:
                inner = [whole]
            lines += [f"  {' ' if number else '-'} {line}" for number, line in enumerate(inner)]
    return lines
