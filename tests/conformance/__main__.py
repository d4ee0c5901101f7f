"""``python -m tests.conformance FILE``: the arguments, what is printed, the exit code."""

from __future__ import annotations

import json
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from service.observability.logs import configure
from tests.conformance import through_core, ververica_json
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
        Form, typer.Option(help="How cases are written; Ververica's JSON for the core alone.")
    ] = Form.RULE,
    only: Annotated[
        list[str] | None, typer.Option(help="Only cases whose id begins so; may be repeated.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first so many cases.", min=1)] = None,
) -> None:
    """Compare this project's answers with Flink's; exit code 1 when one differs."""
    chosen = [
        case
        for file in files
        for case in cases(file)
        if not only or case["id"].startswith(tuple(only))
    ][:limit]
    failed = 0
    for case, got in zip(chosen, _answers(chosen, through, WRITERS[written]), strict=True):
        found = compare(case, got)
        if found is not None:
            failed += 1
            typer.echo(f"{case['id']}\n  pattern: {json.dumps(WRITERS[written](case))}")
            typer.echo(f"  feed: {json.dumps(case['feed'])}\n{found}\n")
    typer.echo(f"{len(chosen) - failed} passed, {failed} failed")
    raise typer.Exit(1 if failed else 0)


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
