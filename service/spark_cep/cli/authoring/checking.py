"""``spark-cep check``: reads rules, and holds them against event schemas."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spark_cep.codecs.schema_files import AVRO, PROTOBUF
from spark_cep.documents.nearest import instead
from spark_cep.errors import (
    ConfigurationError,
    Problem,
    RuleSetError,
    SchemaNotFoundError,
    StartError,
    printable,
)
from spark_cep.language.findings import findings_of
from spark_cep.language.known.event_types import records_of_file
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.several_types import InputRecord
from spark_cep.pattern.sql_types import endless
from spark_cep.pattern.type_check import type_check
from spark_cep.rules.rule_set import RuleFile, RuleSet, examine
from spark_cep.rules.sources.folder import (
    RULE_FILES,
    has_cases,
    read_files,
    read_rules,
    shown_name,
)
from spark_cep.rules.sources.source import rule_file

if TYPE_CHECKING:
    from spark_cep.config import Settings

STANDARD_INPUT: Final = Path("-")
_STANDARD_INPUT_NAME: Final = "<stdin>"
#: The time that Kafka has to answer whether a topic exists.
_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of a check: everything wrong, in the order of the places, and the warnings.
    ``silenced``: warnings that comments allow, with the reason that they give. ``notes``: what is
    wrong with the input topics of the settings, or why they could not be looked for."""

    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    silenced: tuple[tuple[Problem, str], ...]
    summary: str
    notes: tuple[str, ...]


def check_rules(paths: Sequence[Path], config: Path | None, schemas: Sequence[Path]) -> CheckReport:
    """Check the rules of ``paths``, or those of the source that ``config`` names. RuleSetError when
    these cannot be read."""
    rules = _given_rules(paths, config)
    types = [] if config is not None else _types_of_files(schemas)
    found = findings_of(rules, lambda _: types)
    problems, warnings = list(found.problems), list(found.warnings)
    checked = "Columns and types were not checked: give --schema or --config."
    notes: list[str] = []
    if config is None:
        problems += _endless(rules)
    else:
        wrong, noted = _registry_findings(rules, config, notes)
        problems += wrong
        warnings += noted
        checked = f"Columns and types were checked against the schemas of the inputs of {config}."
    if types:
        checked = f"Columns and types were checked against {', '.join(map(str, schemas))}."
    count, warned = len(rules.rules), len(warnings)
    valid = "1 rule is valid" if count == 1 else f"{count} rules are valid"
    if warned:
        valid += ", with 1 warning" if warned == 1 else f", with {warned} warnings"
    ordered = tuple(sorted(problems, key=_by_place))
    return CheckReport(
        ordered, tuple(warnings), found.silenced, f"{valid}. {checked}", tuple(notes)
    )


def why_passed_over(path: Path) -> str | None:
    """The reason why a file has no rules, by its name; a folder passes over such files, too."""
    if path == STANDARD_INPUT or not path.is_file():
        return None
    if has_cases(path):
        return "it has test cases, which `spark-cep test` runs"
    if path.suffix.lower() in (AVRO, PROTOBUF):
        return "it is a schema, which --schema takes"
    return None


def _given_rules(paths: Sequence[Path], config: Path | None) -> RuleSet:
    if paths:
        files: list[RuleFile] = []
        given = [path for path in paths if why_passed_over(path) is None]
        if not given:
            return RuleSet(())
        for path in given:
            if path == STANDARD_INPUT:
                files.append(_from_standard_input())
                continue
            _must_exist(path)
            files += read_files(path)
        names = ", ".join(shown_name(path) for path in given)
        return examine(files, names, RULE_FILES)
    if config is None:
        raise ConfigurationError(
            "there are no rules to check: give rule files or folders of them, - for the standard"
            " input, or --config"
        )
    # The settings, and clients of sources, are slow to import.
    from spark_cep.config import load
    from spark_cep.rules.sources.configured import examined

    return examined(load(config))


def _from_standard_input() -> RuleFile:
    text = sys.stdin.read()
    begin = text.lstrip("\ufeff \t\r\n")
    in_sql = begin[:6].upper() == "SELECT" or (begin[:2] == "--" and begin[:3] != "---")
    if not in_sql:
        return rule_file(text, _STANDARD_INPUT_NAME)
    return rule_file(text, f"{_STANDARD_INPUT_NAME}.sql")


def _existing_topics(settings: Settings, notes: list[str]) -> list[str] | None:
    """The topics that Kafka has; ``None`` where it cannot be asked, and a note says why."""
    from spark_cep.pipeline.driver.kafka.cluster import Cluster

    try:
        return Cluster(settings, seconds=_SECONDS).topics()
    except (ConfigurationError, StartError) as error:
        notes.append(f"{error}; so it was not checked whether the input topics exist")
        return None


def _endless(rules: RuleSet) -> Iterator[Problem]:
    """Problems that a job refuses a rule for unless its input ends, as its configuration says."""
    ending = "--config of a job whose input ends (trigger.at_end_of_input: decide)"
    for one in rules.loaded:
        for problem in endless(one) if one.rule.query is not None else ():
            yield replace(problem, allowed=f"{problem.allowed}; or {ending}")


def read_existing(path: Path) -> RuleSet:
    """The rules of a file or folder; raises ConfigurationError when it is not there, RuleSetError
    with every problem found."""
    _must_exist(path)
    return read_rules(path)


def rule_named(rule_set: RuleSet, rule_id: str, place: str = "") -> LoadedRule:
    """The rule with this id; ConfigurationError, with the ids that there are, where none has it."""
    found = rule_set.by_id.get(rule_id)
    if found is None:
        allowed = instead(rule_id, rule_set.by_id, "rules")
        where = f"{place}: " if place else ""
        raise ConfigurationError(
            f"{where}there is no rule `{printable(rule_id)}`\n  help: {allowed}"
        )
    return found


def check_types(rules: Sequence[LoadedRule], schemas: Sequence[Path]) -> list[InputRecord]:
    """The record types of schema files, once ``rules`` have been checked against them; raises
    RuleSetError with every problem found."""
    types = _types_of_files(schemas)
    problems = _type_problems(rules, types)
    if problems:
        raise RuleSetError(problems)
    return types


def _must_exist(path: Path) -> None:
    if not path.exists():
        raise ConfigurationError(f"{path}: there is no such file or folder")


def _by_place(problem: Problem) -> tuple[str, int, int]:
    span = problem.span
    return (problem.source or "", *((span.line, span.column) if span else (0, 0)))


def _type_problems(rules: Sequence[LoadedRule], types: Sequence[InputRecord]) -> list[Problem]:
    return [problem for loaded in rules for problem in type_check(loaded, types)]


def _types_of_files(files: Sequence[Path]) -> list[InputRecord]:
    return [record for file in files for record in records_of_file(file)]


def _registry_findings(
    rules: RuleSet, config: Path, notes: list[str]
) -> tuple[Sequence[Problem], Sequence[Problem]]:
    """Problems and warnings; what concerns the input topics goes to ``notes``."""
    if rules.problems:
        # A rule that is switched off is checked, and not compiled, which one with parts left out
        # cannot be.
        off = (replace(one, rule=replace(one.rule, enabled=False)) for one in rules.loaded)
        rules = RuleSet(tuple(off))
    try:
        return (), _check_with_registry(rules, config, notes)
    except RuleSetError as error:
        return error.problems, ()


def _check_with_registry(rules: RuleSet, config: Path, notes: list[str]) -> tuple[Problem, ...]:
    # Clients of Kafka and the registry are slow to import.
    from spark_cep.codecs.formats import record_format
    from spark_cep.codecs.registry.registry import Registry
    from spark_cep.config import load
    from spark_cep.pipeline.driver.rules import job_plan

    settings = load(config)
    topics = [topic for source in settings.inputs.values() for topic in source.topics]
    if any(source.topic_pattern for source in settings.inputs.values()):
        from spark_cep.pipeline.driver.kafka.cluster import Cluster

        topics = Cluster(settings).topics()
    existing = _existing_topics(settings, notes)
    with Registry.opened(settings.registry) as registry:
        try:
            schemas = record_format(settings, registry, topics)
        except SchemaNotFoundError as error:
            if existing is not None:
                # A name that is mistyped has no subject either.
                job_plan.input_topics(settings, existing)
            raise SchemaNotFoundError("\n".join([str(error), *notes])) from error
        if existing is not None:
            try:
                job_plan.input_topics(settings, existing)
            except ConfigurationError as error:
                notes.append(str(error))
        return job_plan.check_rules(rules, schemas, ends=settings.trigger.ends)
