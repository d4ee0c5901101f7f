"""``spark-cep test``: runs test cases, and tells what differs from what they expect."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from spark_cep.cli.saving import save
from spark_cep.cli.terminal import err
from spark_cep.documents.nearest import listed
from spark_cep.errors import ConfigurationError, printable_lines

if TYPE_CHECKING:
    from spark_cep.cases.coverage.coverage import Coverage
    from spark_cep.cases.running.outcome import CaseOutcome
    from spark_cep.testkit.inputs import Schema

FAILED: Final = 1
"""The exit code where a case failed, or too little is covered."""


def run_cases(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Case files (NAME.cases.yaml), rule files with `cases`, or folders of both.",
        ),
    ],
    wanted: Annotated[
        str | None,
        typer.Option(
            "--case", "-k", metavar="TEXT", help="Run only cases whose name contains this text."
        ),
    ] = None,
    schema: Annotated[
        list[str] | None,
        typer.Option(
            "--schema",
            "-s",
            metavar="[INPUT=]FILE",
            help="Schema file of the events, for all inputs or for one: Avro (.avsc), JSON Schema,"
            " or Protobuf (FILE.proto, FILE.proto:MESSAGE).",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            "-c",
            help="Take the schemas of the inputs in these settings, from the registry.",
            dir_okay=False,
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", help="Write the outcome to this JUnit file.", dir_okay=False),
    ] = None,
    coverage: Annotated[
        bool, typer.Option("--coverage", help="Show which parts of the rules no case covers.")
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            min=0,
            max=100,
            metavar="PERCENT",
            help="Fail if the coverage of all rules together is below this.",
        ),
    ] = None,
    update: Annotated[
        bool,
        typer.Option(
            "--update", help="Replace the expected results in the case files by those found."
        ),
    ] = False,
) -> None:
    """Run test cases: events with times, and the matches, timeouts and failures expected from them.
    Neither Spark nor Kafka is required; --config requires the registry."""
    from spark_cep.cases.coverage.coverage import Coverage
    from spark_cep.cases.coverage.observed import observing
    from spark_cep.cases.document.files import suites
    from spark_cep.cases.running.case_run import selected
    from spark_cep.cases.running.outcome import outcome
    from spark_cep.matcher.keys import KeysMatcher

    found = suites(paths, _schemas(schema or [], config))
    covered = Coverage() if coverage or threshold is not None else None
    if covered is not None:
        _add_rules(covered, paths)
    matcher = KeysMatcher if covered is None else observing(covered)
    outcomes = [
        outcome(suite, case, matcher) for suite in found for case in selected(suite, wanted)
    ]
    if not outcomes:
        names = [case.name for suite in found for case in suite.file.cases]
        raise ConfigurationError(f"no case has {wanted!r} in its name; there are {listed(names)}")
    if junit is not None:
        from spark_cep.cases.running.junit import junit as junit_of

        save(junit_of(outcomes), junit)
    if update:
        _update(outcomes)
        return
    failed = _show(outcomes)
    short = covered is not None and _show_coverage(covered, threshold)
    if failed or short:
        sys.exit(FAILED)


def _add_rules(coverage: Coverage, paths: Sequence[Path]) -> None:
    """Count the rules of folders, so that those without cases are not left out."""
    from spark_cep.compiler.rule_set import compile_rules
    from spark_cep.rules.sources.folder import read_rules

    for path in filter(Path.is_dir, paths):
        for plan in compile_rules(read_rules(path).enabled).plans:
            coverage.of(plan)


def _schemas(given: Sequence[str], config: Path | None) -> Mapping[str | None, Schema]:
    if config is not None:
        if given:
            raise ConfigurationError("give --schema or --config, not both")
        return _of_settings(config)
    from spark_cep.codecs.schema_files import SchemaFile

    schemas: dict[str | None, Schema] = {}
    for each in given:
        name, sign, file = each.partition("=")
        path = Path(file if sign else name)
        if not SchemaFile.of(path).path.is_file():
            raise ConfigurationError(f"--schema: there is no file {path}")
        schemas[name if sign else None] = path
    if None in schemas and len(schemas) > 1:
        raise ConfigurationError("--schema: give one FILE for all inputs, or INPUT=FILE for each")
    return schemas


def _of_settings(config: Path) -> Mapping[str | None, Schema]:
    """The schemas that the settings read, by input."""
    # Clients of the registry are slow to import.
    from spark_cep.cli.authoring.settings_schemas import reader_schemas
    from spark_cep.config import load

    schemas: dict[str | None, Schema] = {}
    schemas.update(reader_schemas(load(config)))
    return schemas


def _show(outcomes: Sequence[CaseOutcome]) -> int:
    """Print the outcome of each case; returns how many failed."""
    for each in outcomes:
        typer.echo(f"{'ok    ' if each.passed else 'FAILED'}  {each.case.place}: {each.case.name}")
        if not each.passed:
            for line in each.lines():
                typer.echo(f"  {printable_lines(line)}".rstrip())
            typer.echo()
    failed = sum(not each.passed for each in outcomes)
    seconds = sum(each.seconds for each in outcomes)
    passed = len(outcomes) - failed
    typer.echo(f"{passed} passed, {failed} failed in {seconds:.1f} s")
    return failed


def _show_coverage(coverage: Coverage, threshold: float | None) -> bool:
    """Print the coverage; returns whether it is below the threshold."""
    typer.echo("\ncoverage")
    for line in coverage.lines():
        typer.echo(f"  {printable_lines(line)}")
    share = 100 * coverage.share
    if threshold is None or share >= threshold:
        return False
    err.print(f"error: {share:.1f} % is covered, the threshold is {threshold:g} %", markup=False)
    return True


def _update(outcomes: Sequence[CaseOutcome]) -> None:
    from spark_cep.cases.writing.accepting import accept

    written = accept(outcomes)
    for file, count in written.items():
        typer.echo(f"{file}: {count} {'case' if count == 1 else 'cases'} accepted")
    if not written:
        typer.echo("all cases passed; nothing to accept")
