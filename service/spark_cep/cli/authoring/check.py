"""``spark-cep check``: what is wrong with rules."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Final

import typer

from spark_cep.cli.authoring.forms import CheckForm
from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.terminal import err, note, print_warnings
from spark_cep.errors import RuleSetError, printable, printable_lines

_MOST_ROUNDS: Final = 10


def check(
    rules: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Rule files, folders of rule files, or - for standard input; default: the rules"
            " of the settings.",
            allow_dash=True,
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            help="Check against the schemas of the inputs in these settings.",
            dir_okay=False,
        ),
    ] = None,
    schema: Annotated[
        list[Path] | None,
        typer.Option(
            "--schema",
            "-s",
            help="Check against this schema file: Avro (.avsc), JSON Schema, or Protobuf"
            " (FILE.proto, FILE.proto:MESSAGE).",
            dir_okay=False,
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")] = False,
    fix: Annotated[
        bool, typer.Option("--fix", help="Apply fixes that are unambiguous to the rule files.")
    ] = False,
    form: Annotated[
        CheckForm, typer.Option("--format", "-f", help="Output format.")
    ] = CheckForm.TEXT,
) -> None:
    """Check rules, with --schema or --config also against the schemas of the events. Neither Spark
    nor Kafka is required. --config requires the registry. With --config, a warning is printed if
    Kafka does not answer, refuses the login or lacks an input topic; it does not change the exit
    code."""
    from spark_cep.cli.authoring import check_forms
    from spark_cep.cli.authoring.checking import STANDARD_INPUT, check_rules, why_passed_over
    from spark_cep.cli.authoring.fixing import fix_files

    paths = rules or []
    if fix and (not paths or STANDARD_INPUT in paths):
        raise typer.BadParameter("--fix takes rule files and folders")
    for path in paths:
        why = why_passed_over(path)
        if why is not None:
            note(f"{path} is not checked: {why}")
    report = check_rules(paths, config, schema or [])
    fixed = Counter[Path]()
    for _ in range(_MOST_ROUNDS if fix else 0):
        # What is fixed may show what stood behind it.
        found = fix_files(paths, (*report.problems, *report.warnings))
        if not found:
            break
        fixed.update(found)
        report = check_rules(paths, config, schema or [])
    for file, count in fixed.items():
        err.print(f"fixed {count} in {printable(str(file))}", markup=False)
    for each in report.notes:
        err.print(f"warning: {printable_lines(each)}\n", markup=False)
    if form is not CheckForm.TEXT:
        typer.echo(check_forms.written(report, form), nl=False)
    else:
        print_warnings(report.warnings)
        if report.problems:
            raise RuleSetError(report.problems)
        typer.echo(report.summary)
    if report.problems or (strict and report.warnings):
        sys.exit(ExitCode.RULES)
