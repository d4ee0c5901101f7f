"""``spark-cep check --fix``: writes what is meant without doubt into the rule files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from spark_cep.errors import Problem
from spark_cep.rules.sources.folder import rule_files, shown_name

_LINE = re.compile("(\r\n|[\n\r\x85\u2028\u2029])")


def fix_files(paths: Sequence[Path], found: Iterable[Problem]) -> dict[Path, int]:
    """Fix the rule files among ``paths`` and in these folders; how much was fixed in each."""
    by_source: dict[str, list[Problem]] = {}
    for problem in found:
        if problem.fix is not None and problem.span is not None and problem.source is not None:
            by_source.setdefault(problem.source, []).append(problem)
    fixed = {}
    for path in paths:
        for file in rule_files(path) if path.is_dir() else [path]:
            mine = by_source.pop(shown_name(file), [])
            if not mine:
                continue
            before = file.read_bytes().decode()
            after, count = fixed_text(before, mine)
            if count:
                file.write_bytes(after.encode())
                fixed[file] = count
    return fixed


def fixed_text(text: str, found: Iterable[Problem]) -> tuple[str, int]:
    """The text with its fixes, and their number. Places that are not as they were found stay, and
    the first of two that overlap."""
    parts = _LINE.split(text)
    lines, ends = parts[::2], [*parts[1::2], ""]
    removed: set[int] = set()
    count = 0
    places = sorted(
        ((p.span.line, p.span.column, p) for p in found if p.span is not None),
        key=lambda each: each[:2],
        reverse=True,
    )
    known = {line: lines[line - 1] for line, _, _ in places if line <= len(lines)}
    changed: dict[int, int] = {}
    for line, column, problem in places:
        if problem.span is None or known.get(line) != problem.excerpt:
            continue
        before, start = lines[line - 1], column - 1
        if start + problem.span.length > changed.get(line, len(before)):
            continue  # it overlaps what is changed already
        changed[line] = start
        after = before[:start] + (problem.fix or "") + before[start + problem.span.length :]
        if not problem.fix:
            after = after.rstrip()
            if not after:
                removed.add(line)
        lines[line - 1] = after
        count += 1
    numbered = enumerate(zip(lines, ends, strict=True), 1)
    return "".join(each + end for n, (each, end) in numbered if n not in removed), count
