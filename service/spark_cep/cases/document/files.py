"""Case files, with the rules that they test and the schemas of their events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spark_cep.cases.document.loading import Case, CaseFile, read_file, unknown_names
from spark_cep.codecs.schema_files import schemas_among
from spark_cep.errors import ConfigurationError
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.rules.rule_set import assemble
from spark_cep.rules.sources.folder import OF_CASES, SUFFIXES, has_cases, read_rules, rule_files

if TYPE_CHECKING:
    from spark_cep.testkit.inputs import Schema


@dataclass(frozen=True)
class Suite:
    """The cases of one file, the rules that they test, and the schemas of events: one of all
    inputs (``None``), or by input; none where types follow from values."""

    file: CaseFile
    rules: tuple[LoadedRule, ...]
    schemas: Mapping[str | None, Schema]

    def rules_of(self, case: Case) -> tuple[LoadedRule, ...]:
        """The rules that take part in a case."""
        wanted = case.shape.rule
        if wanted is None:
            return self.rules
        return tuple(one for one in self.rules if one.rule.id == wanted)


def suites(paths: Sequence[Path], given: Mapping[str | None, Schema]) -> list[Suite]:
    """The cases of files and folders. ``given``: schemas that go before those of the files.

    Raises ConfigurationError with every problem of the cases of all files, or where there are no
    cases at all; RuleSetError with those of the rules.
    """
    found: list[Suite] = []
    wrong: list[ConfigurationError] = []
    for path in _files(paths):
        try:
            found += [_suite(file, given) for file in read_file(path) if file.cases]
        except ConfigurationError as error:
            if not error.problems:
                raise
            wrong.append(error)
    if wrong:
        problems = [problem for error in wrong for problem in error.problems]
        raise ConfigurationError("; ".join(map(str, wrong)), problems)
    if not found:
        listed = ", ".join(map(str, paths))
        raise ConfigurationError(
            f"{listed}: there are no test cases: they stand in files named NAME{OF_CASES}.yaml"
            " beside NAME.yaml, or below `cases` in a rule's document"
        )
    return found


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files that may have cases, each once."""
    seen: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise ConfigurationError(f"{path}: there is no such file or folder")
        files = [path] if path.is_file() else sorted([*rule_files(path), *case_files(path)])
        yield from (file for file in files if file.resolve() not in seen)
        seen.update(file.resolve() for file in files)


def case_files(folder: Path) -> list[Path]:
    """The case files of a folder, sorted by name."""
    return sorted(
        entry
        for entry in folder.iterdir()
        if entry.suffix.lower() in SUFFIXES
        and has_cases(entry)
        and not entry.name.startswith(".")
        and entry.is_file()
    )


def _suite(file: CaseFile, given: Mapping[str | None, Schema]) -> Suite:
    rules = rules_of(file)
    problems = [problem for case in file.cases for problem in unknown_names(case, rules)]
    if problems:
        raise ConfigurationError(f"{file.path}: {len(problems)} unknown names", problems)
    return Suite(file, rules, given or file.schemas or _beside(file.path, rules))


def rules_of(file: CaseFile) -> tuple[LoadedRule, ...]:
    """The rules that the cases of a file test. ConfigurationError where it does not say which;
    RuleSetError with the problems of these."""
    paths = file.rules or (_rule_file(file.path),)
    loaded: list[LoadedRule] = []
    for path in paths:
        if not path.exists():
            raise ConfigurationError(f"{file.path}: `rules`: there is no {path}")
        loaded += read_rules(path).loaded
    rules = assemble(loaded).loaded
    return tuple(one for one in rules if file.rule in (None, one.rule.id))


def _rule_file(path: Path) -> Path:
    """The rule file of a case file's name."""
    name = path.stem[: -len(OF_CASES)]
    found = [path.with_name(name + suffix) for suffix in SUFFIXES]
    existing = [each for each in found if each.exists()]
    if len(existing) != 1:
        several = ", ".join(each.name for each in existing)
        said = f"there are {several}" if existing else f"there is no {name}.yaml beside"
        raise ConfigurationError(
            f"{path}: {said}: say which rules it tests, with `rules: FILE` (or a list of files) at"
            " its beginning"
        )
    return existing[0]


def _beside(path: Path, rules: Sequence[LoadedRule]) -> Mapping[str | None, Path]:
    """The schema files beside: each of its input's name, or the only one."""
    files = schemas_among(path.parent.iterdir())
    inputs = dict.fromkeys(name for one in rules for name in one.rule.events)
    named: dict[str | None, Path] = {file.stem: file for file in files if file.stem in inputs}
    missing = [name for name in inputs if name not in named]
    if named and not missing:
        return named
    if not named and len(files) <= 1:
        return dict.fromkeys([None], files[0]) if files else {}
    wanted = f"`schemas: {{{', '.join(f'{name}: FILE' for name in inputs)}}}`"
    said = (
        f"there is a schema file of input {', '.join(map(str, named))}, and none of"
        f" {', '.join(missing)}"
        if named
        else f"there are {', '.join(file.name for file in files)}, and none has an input's name"
    )
    raise ConfigurationError(
        f"{path}: {said}: say which schemas the events have, with"
        f" {wanted if inputs else '`schemas: FILE`'} at the beginning of a case file, or with"
        " --schema"
    )
