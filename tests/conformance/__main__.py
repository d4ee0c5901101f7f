"""``python -m tests.conformance FILE``: the arguments, what is printed, the exit code."""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from spark_cep.observability.logs import configure
from tests.conformance import match_recognize, through_core, ververica_json
from tests.conformance.answer import Answer, compare
from tests.conformance.case import Case, Writer, cases, document


class Way(StrEnum):
    """What answers."""

    CORE = "core"
    SPARK = "spark"


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
        Form, typer.Option(help="How cases are written: as rules, or as Ververica's JSON.")
    ] = Form.RULE,
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
    for case, found in _differences(in_sql, through):
        failed.append(case)
        typer.echo(f"{case['id']}\n  {match_recognize.statement(case)}\n{found}\n")
    of_flink = [case for case in chosen if not match_recognize.is_case(case)]
    for case, got in zip(of_flink, _answers(of_flink, through, WRITERS[written]), strict=True):
        difference = compare(case, got)
        if difference is not None:
            failed.append(case)
            typer.echo(f"{case['id']}\n  pattern: {json.dumps(WRITERS[written](case))}")
            typer.echo(f"  feed: {json.dumps(case['feed'])}\n{difference}\n")
    if by_feature:
        _count_features(chosen, failed)
    typer.echo(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    raise typer.Exit(1 if failed else 0)


def _differences(in_sql: list[Case], through: Way) -> Iterable[tuple[Case, str]]:
    if through is Way.SPARK and in_sql:
        # Spark takes seconds to import and is not needed otherwise.
        from tests.conformance.match_recognize_spark import differences
        from tests.conformance.through_spark import whole_jobs

        with whole_jobs() as new_job:
            yield from differences(in_sql, new_job)
        return
    for case in in_sql:
        found = match_recognize.difference(case)
        if found is not None:
            yield case, found


def _count_features(chosen: list[Case], failed: list[Case]) -> None:
    counts = Counter(feature for case in chosen for feature in case.get("features", ()))
    wrong = Counter(feature for case in failed for feature in case.get("features", ()))
    for feature, count in sorted(counts.items()):
        typer.echo(f"{count - wrong[feature]:>6} passed {wrong[feature]:>4} failed  {feature}")


def _answers(chosen: list[Case], through: Way, writer: Writer) -> list[Answer]:
    if through is Way.CORE:
        return through_core.answers(chosen, writer)
    # Spark takes seconds to import and is not needed above.
    from tests.conformance import through_spark

    configure("error", stream=sys.stderr)
    # By default the signal leaves the servers' files behind.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with through_spark.whole_jobs() as new_job:
        return through_spark.answers(chosen, new_job, writer)


if __name__ == "__main__":
    typer.run(main)
