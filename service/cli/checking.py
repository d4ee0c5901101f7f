"""What ``spark-cep check`` does: read rules, and hold them against event schemas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from service.codecs.avro_schema import parse
from service.codecs.reader_schemas import record_names, record_schema
from service.errors import ConfigurationError, Problem, RuleSetError
from service.pattern.document import LoadedRule
from service.pattern.type_check import type_check
from service.pattern.types import RecordType, record_type
from service.rules.folder import read_rules
from service.rules.rule_set import RuleSet


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A check that found nothing wrong."""

    warnings: tuple[Problem, ...]
    summary: str


def check_rules(path: Path, config: Path | None, schemas: Sequence[Path]) -> CheckReport:
    """Check the rules of ``path``; raises RuleSetError with every problem found."""
    rules = read_existing(path)
    against = "their text alone (give --schema or --config to check columns and types too)"
    if config is not None:
        _check_with_registry(rules, config)
        against = f"the registry's schemas of {config}"
    elif schemas:
        check_types(rules.loaded, schemas)
        against = ", ".join(map(str, schemas))
    count = len(rules.rules)
    summary = f"{count} rule{'' if count == 1 else 's'} in order, checked against {against}"
    return CheckReport(rules.warnings, summary)


def read_existing(path: Path) -> RuleSet:
    """The rules of a file or folder; raises ConfigurationError when it is not there, RuleSetError
    with every problem found."""
    if not path.exists():
        raise ConfigurationError(f"{path}: there is no such file or folder")
    return read_rules(path)


def check_types(rules: Sequence[LoadedRule], schemas: Sequence[Path]) -> dict[str, RecordType]:
    """The record types of Avro schema files, by full and by short name, once ``rules`` have been
    checked against them; raises RuleSetError with every problem found."""
    types = _types_of_files(schemas)
    problems = [problem for loaded in rules for problem in type_check(loaded, types)]
    if problems:
        raise RuleSetError(problems)
    return types


def _types_of_files(files: Sequence[Path]) -> dict[str, RecordType]:
    types: dict[str, RecordType] = {}
    for file in files:
        try:
            text = file.read_text("utf-8")
        except OSError as error:
            raise ConfigurationError(f"{file}: cannot be read: {error.strerror}") from error
        schema = parse(text, str(file))
        for name in record_names(schema):
            columns = record_type(record_schema(schema, name).text)
            types[name] = columns
            types.setdefault(name.rpartition(".")[2], columns)
    return types


def _check_with_registry(rules: RuleSet, config: Path) -> None:
    # The catalogue needs PySpark's module, though no Spark is started.
    from service.codecs.registry import Registry
    from service.config import load
    from service.pipeline.catalogue import build
    from service.pipeline.kafka import Cluster
    from service.pipeline.service import checked_plan, registry_settings

    settings = load(config)
    patterns = any(source.topic_pattern for source in settings.inputs.values())
    topics = (
        Cluster(settings).topics()
        if patterns
        else [topic for source in settings.inputs.values() for topic in source.topics]
    )
    registry = Registry(registry_settings(settings))
    try:
        checked_plan(rules, build(settings, registry, topics))
    finally:
        registry.close()
