"""The plan of a job: rules held against the schemas of its inputs.

Needs the schemas alone, so ``spark-cep check`` does the same as the start of a job, without Spark
and without the service.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from spark_cep.codecs.record_reader import RecordFormat
from spark_cep.config import Settings
from spark_cep.documents.nearest import instead, listed, nearest
from spark_cep.errors import ConfigurationError, Problem, RuleSetError
from spark_cep.event_times import KAFKA_TIMESTAMP
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.several_types import InputRecord
from spark_cep.pattern.sql_types import at_input, check_statement, endless
from spark_cep.pattern.type_check import type_check, type_warnings, with_columns_of
from spark_cep.pipeline.decode.decoder_plan import check_columns, record_types
from spark_cep.rules.plans import plan_for
from spark_cep.rules.rule_set import RuleFile, RuleSet
from spark_cep.rules.sources.source import RuleSource
from spark_cep.rules.topic_records import too_large


def check_rules(
    rules: RuleSet, schemas: RecordFormat, *, ends: bool = False
) -> tuple[Problem, ...]:
    """Hold all rules against what is read, and compile those that are enabled; what the schemas say
    against them without refusing them. ``ends``: whether the job's input does.

    Raises RuleSetError with every problem of the rules, and SchemaError where columns are not of
    types that can be read.
    """
    problems = [problem for one in rules.loaded for problem in problems_of(one, schemas, ends=ends)]
    if problems:
        raise RuleSetError(problems)
    (spelled,) = spelled_out([RuleFile("", rules.loaded)], schemas, RuleSet())
    plan = plan_for(replace(rules, loaded=spelled.loaded), record_types(schemas))
    check_columns(plan, schemas)
    return tuple(warnings_of(rules, schemas))


def problems_of(loaded: LoadedRule, schemas: RecordFormat, *, ends: bool = False) -> list[Problem]:
    """The problems of a rule with the schemas of its inputs and with the topics of rules. ``ends``:
    the job's input ends."""
    large = too_large(loaded)
    if large:
        return large
    if loaded.rule.query is not None:
        problems = _statement_problems(loaded, loaded.rule.query.input, schemas)
        return problems if ends else [*problems, *endless(loaded)]
    inputs = {t.input for t in schemas.types}
    unknown = [name for name in loaded.rule.events if name not in inputs]
    if unknown or (not loaded.rule.events and len(inputs) > 1):
        return [_which_input(loaded, unknown, sorted(inputs))]
    return type_check(loaded, _records(loaded, schemas))


def _statement_problems(loaded: LoadedRule, source: str, schemas: RecordFormat) -> list[Problem]:
    inputs = dict.fromkeys(t.input for t in schemas.types)
    if source not in inputs:
        message = f"there is no input `{source}`"
        return [at_input(loaded, message, instead(source, inputs, "inputs"))]
    first, *others = schemas.types_of([source])
    if others:
        names = ", ".join(t.name for t in (first, *others))
        message = f"the input `{source}` has events of several record types: {names}"
        allowed = f"an input whose rows are of one: inputs.{source}.record names it"
        return [at_input(loaded, message, allowed)]
    in_column = first.event_time != KAFKA_TIMESTAMP
    event_time = tuple(first.event_time.split(".")) if in_column else ()
    return check_statement(loaded, first.columns, event_time)


def spelled_out(
    files: Iterable[RuleFile], schemas: RecordFormat, running: RuleSet
) -> list[RuleFile]:
    """Write out the columns of rules in SQL, so that they need no schemas to say what they put out.
    Those of a version that is ``running`` do not change when schemas do."""
    rules = {rule.id: rule for rule in running.rules}

    def of_rule(one: LoadedRule) -> LoadedRule:
        if one.rule.query is None:
            return one
        return with_columns_of(one, _records(one, schemas), rules.get(one.rule.id))

    return [replace(file, loaded=tuple(map(of_rule, file.loaded))) for file in files]


def warnings_of(rules: RuleSet, schemas: RecordFormat) -> list[Problem]:
    """Warnings that the schemas give of rules, without refusing them."""
    return [
        warning
        for loaded in rules.loaded
        for warning in type_warnings(loaded, _records(loaded, schemas))
    ]


def _records(loaded: LoadedRule, schemas: RecordFormat) -> list[InputRecord]:
    types = schemas.types_of(loaded.rule.events)
    return [(f"input {t.input}", t.name, t.columns) for t in types]


def within_limit(rules: RuleSet, settings: Settings, source: RuleSource) -> RuleSet:
    """Return the rules; ConfigurationError when ``source`` holds too many."""
    if len(rules.enabled) > settings.rules.max_rules:
        raise ConfigurationError(
            f"{source.name} holds {len(rules.enabled)} rules;"
            f" rules.max_rules allows {settings.rules.max_rules}"
        )
    return rules


def input_topics(settings: Settings, existing: Sequence[str]) -> list[str]:
    """The topics that are read; ConfigurationError when one does not exist."""
    topics: list[str] = []
    for name, source in settings.inputs.items():
        matching = source.topics_of(existing)
        missing = sorted(set(matching) - set(existing))
        if missing:
            near = (nearest(topic, existing) for topic in missing)
            meant = ", ".join(filter(None, near))
            exist = "does not exist" if len(missing) == 1 else "do not exist"
            raise ConfigurationError(
                f"inputs.{name}.topics: {', '.join(missing)} {exist} on"
                f" {settings.kafka.bootstrap_servers};"
                + (f" did you mean {meant}?" if meant else "")
                + f" there are: {listed(existing, like=missing[0])}"
            )
        if not matching:
            raise ConfigurationError(
                f"inputs.{name}.topic_pattern {source.topic_pattern!r} matches none of:"
                f" {', '.join(existing) or 'no topics'}"
            )
        topics += matching
    return list(dict.fromkeys(topics))


def _which_input(loaded: LoadedRule, unknown: list[str], inputs: list[str]) -> Problem:
    rule = loaded.rule
    message = (
        f"events: there is no input {', '.join(unknown)}"
        if unknown
        else "events: there are several inputs, so the rule must say which it reads"
    )
    return Problem(
        message=message, source=rule.source, rule=rule.id, allowed=f"one of {', '.join(inputs)}"
    )
