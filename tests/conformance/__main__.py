"""``python -m tests.conformance FILE``: the arguments, what is printed, the exit code."""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from service.observability.logs import configure
from tests.conformance import match_recognize, through_core, ververica_json
from tests.conformance.answer import Answer, compare
from tests.conformance.case import Case, Writer, cases, document


class Way(StrEnum):
    """What answers."""

    CORE = "core"
    SPARK = "spark"


class Matcher(StrEnum):
    """What runs MATCH_RECOGNIZE in this process."""

    REFERENCE = "reference"
    COMPILED = "compiled"


class Form(StrEnum):
    """How cases are written."""

    RULE = "rule"
    VERVERICA = "ververica"


WRITERS = {Form.RULE: document, Form.VERVERICA: ververica_json.document}


def main(
    files: Annotated[list[Path], typer.Argument(help="Cases, one JSON object a line.")],
    through: Annotated[
        Way, typer.Option(help="The core in this process, or the whole job on Kafka and Spark.")
    ] = Way.CORE,
    written: Annotated[
        Form, typer.Option(help="How cases are written; Ververica's JSON for the core alone.")
    ] = Form.RULE,
    matcher: Annotated[
        Matcher, typer.Option(help="Of MATCH_RECOGNIZE: the plain matcher, or the compiled one.")
    ] = Matcher.REFERENCE,
    only: Annotated[
        list[str] | None, typer.Option(help="Only cases whose id begins so; may be repeated.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first so many cases.", min=1)] = None,
    by_feature: Annotated[
        bool,
        typer.Option("--by-feature", help="Count the cases of each feature, where it is said."),
    ] = False,
) -> None:
    """Compare this project's answers with Flink's and Trino's; exit code 1 when one differs."""
    chosen = [
        case
        for file in files
        for case in cases(file)
        if not only or case["id"].startswith(tuple(only))
    ][:limit]
    failed: list[Case] = []
    in_sql = [case for case in chosen if match_recognize.is_case(case)]
    if in_sql and through is Way.SPARK:
        raise typer.BadParameter("MATCH_RECOGNIZE runs in this process alone: --through core")
    for case in in_sql:
        found = match_recognize.difference(case, compiled=matcher is Matcher.COMPILED)
        if found is not None:
            failed.append(case)
            typer.echo(f"{case['id']}\n  {match_recognize.statement(case)}\n{found}\n")
    of_flink = [case for case in chosen if not match_recognize.is_case(case)]
    for case, got in zip(of_flink, _answers(of_flink, through, WRITERS[written]), strict=True):
        found = compare(case, got)
        if found is not None:
            failed.append(case)
            typer.echo(f"{case['id']}\n  pattern: {json.dumps(WRITERS[written](case))}")
            typer.echo(f"  feed: {json.dumps(case['feed'])}\n{found}\n")
    if by_feature:
        _count_features(chosen, failed)
    typer.echo(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    raise typer.Exit(1 if failed else 0)


def _count_features(chosen: list[Case], failed: list[Case]) -> None:
    counts = Counter(feature for case in chosen for feature in case.get("features", ()))
    wrong = Counter(feature for case in failed for feature in case.get("features", ()))
    for feature, count in sorted(counts.items()):
        typer.echo(f"{count - wrong[feature]:>6} passed {wrong[feature]:>4} failed  {feature}")


def _answers(chosen: list[Case], through: Way, writer: Writer) -> list[Answer]:
    if through is Way.CORE:
        return through_core.answers(chosen, writer)
    if writer is not document:
        raise typer.BadParameter("the whole job takes cases as rules alone")
    # Spark takes seconds to import and is not needed above.
    from tests.conformance import through_spark

    configure("error", stream=sys.stderr)
    # By default the signal leaves the servers' files behind.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with through_spark.whole_jobs() as new_job:
        return through_spark.answers(chosen, new_job)


if __name__ == "__main__":
    typer.run(main)
