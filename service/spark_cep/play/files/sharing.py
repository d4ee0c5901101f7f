"""A trial as files that ``spark-cep test`` runs and passes: a rule's file with the case in it, and
the schemas beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from spark_cep.cases.document.files import Suite
from spark_cep.cases.document.loading import read_text
from spark_cep.cases.running.outcome import outcome
from spark_cep.cases.writing.accepting import accepted_text
from spark_cep.cases.writing.case_text import case_lines
from spark_cep.codecs.schema_files import AVRO
from spark_cep.errors import ConfigurationError
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.document.sql_file import SUFFIX as SQL_SUFFIX
from spark_cep.play.files.case_place import with_cases, without_cases
from spark_cep.play.reading import Schemas, case_of, chosen, head_of, rules_of, step_of
from spark_cep.play.trial import Trial

_YAML: Final = ".yaml"


def shared(trial: Trial) -> Mapping[str, str]:
    """The files of a trial by name, the rule's first; with what was found as what is expected.

    Raises ConfigurationError where it could not be run, RuleSetError for a rule with problems.
    """
    rules = rules_of(trial)
    loaded = chosen(trial, rules)
    if loaded is None:
        raise ConfigurationError("there is no rule to share")
    schemas = Schemas.of(trial.schemas)
    _, problems = case_of(trial, schemas)
    for problem in (*schemas.problems, *problems):
        row = "" if problem.row is None else f"row {problem.row + 1}: "
        raise ConfigurationError(f"{row}{problem.message}")
    name = f"{loaded.rule.id}{SQL_SUFFIX if trial.in_sql else _YAML}"
    text = _with_expectation(Path(name), _text(trial, loaded, schemas), loaded, schemas)
    files = {name: text}
    for input_name, schema in trial.schemas.items():
        if schema.strip():
            files[f"{input_name or loaded.rule.id}{AVRO}"] = schema
    return files


def _text(trial: Trial, loaded: LoadedRule, schemas: Schemas) -> str:
    """The rule's text with the case, which expects nothing yet."""
    steps = [step_of(row, schemas.columns(row.input, row.of_type)) for row in trial.rows]
    head = head_of(trial)
    head = {"case": head.pop("case"), "start": trial.start * 1_000, **head}
    lines = list(case_lines(head, steps))
    text = trial.text
    if not trial.in_sql and text.lstrip("\ufeff \t\r\n")[:1] == "{":
        text = loaded.text  # in braces it has no lines for cases
    text = without_cases(text, in_sql=trial.in_sql)
    return with_cases(text, loaded.rule.id, lines, in_sql=trial.in_sql)


def _with_expectation(name: Path, text: str, loaded: LoadedRule, schemas: Schemas) -> str:
    (file,) = (each for each in read_text(name, text) if each.rule == loaded.rule.id)
    (case,) = file.cases
    suite = Suite(file, (loaded,), dict(schemas.records))
    found = outcome(suite, case)
    if found.run.problem is not None:
        raise ConfigurationError(found.run.problem.message)
    return accepted_text([found])
