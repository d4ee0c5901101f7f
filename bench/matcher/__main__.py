"""``python -m bench.matcher``: measure the matcher alone, print the table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bench.matcher.engines import ENGINES
from bench.matcher.flink_operator import (
    FlinkFailedError,
    FlinkOperator,
    FlinkUnavailableError,
    build,
)
from bench.matcher.measurement import DisagreementError, compare, stay_on_one_core
from bench.matcher.report import circumstances, json_lines, repetitions, table
from bench.matcher.scenarios import SCENARIOS

# Beside .work/bench, which the benchmark of the whole job empties.
_FOLDER = Path(".work/bench-matcher")
_NAMES = tuple(scenario.name for scenario in SCENARIOS)


def main(
    events: Annotated[int, typer.Option(min=1, help="Events in a stream.")] = 1_000_000,
    keys: Annotated[
        list[int] | None, typer.Option(min=1, help="Keys; again for more streams. [default: 10000]")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Events before each watermark.")] = 100_000,
    runs: Annotated[int, typer.Option(min=1, help="Timed runs of each side, in turn.")] = 3,
    rule: Annotated[
        list[str] | None, typer.Option(help=f"Only this one of {', '.join(_NAMES)}.")
    ] = None,
    flink: Annotated[bool, typer.Option(help="Measure Flink's CEP operator too.")] = True,
    json: Annotated[Path | None, typer.Option(help="Also write a JSON line a result.")] = None,
) -> None:
    """Events per second of the matcher alone, on one core, next to Flink's CEP operator."""
    unknown = set(rule or ()) - set(_NAMES)
    if unknown:
        raise typer.BadParameter(f"no rule is named {', '.join(sorted(unknown))}")
    folder = _FOLDER.resolve()
    operator: FlinkOperator | None = None
    reason = "it was not asked for"
    if flink:
        try:
            operator = build(folder / "flink")
        except FlinkUnavailableError as error:
            reason = str(error)
    stay_on_one_core()
    comparisons = []
    for scenario in SCENARIOS:
        if rule and scenario.name not in rule:
            continue
        for count in keys or [10_000]:
            typer.echo(f"{scenario.about}, {count:,} keys", err=True)
            try:
                found = compare(
                    scenario,
                    ENGINES,
                    operator,
                    folder,
                    events=events,
                    keys=count,
                    batch=batch,
                    runs=runs,
                )
            except (DisagreementError, FlinkFailedError) as error:
                typer.echo(f"error: {error}", err=True)
                raise typer.Exit(1) from error
            comparisons.append(found)
    facts = circumstances(operator)
    typer.echo(table(comparisons))
    for line in repetitions(comparisons):
        typer.echo(line)
    if operator is None:
        typer.echo(f"Flink: not measured, because {reason}")
    typer.echo(", ".join(f"{name} {value}" for name, value in facts.items()))
    if json is not None:
        json.write_text(json_lines(comparisons, facts), "utf-8")


if __name__ == "__main__":
    typer.run(main)
