"""``python -m bench``: measure, print the figures, keep them below ``.work/bench``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bench.throughput import measure

_WORK = Path(".work")


def main(
    events: Annotated[int, typer.Option(help="Events in the topic.")] = 1_000_000,
    batch: Annotated[int, typer.Option(help="Most events in one batch.")] = 250_000,
    runs: Annotated[int, typer.Option(help="Runs of job and ceiling, in turn.")] = 3,
) -> None:
    """Throughput of the whole job next to what Spark alone reaches on the same topic."""
    folder = (_WORK / "bench").resolve()
    figures = measure(folder, (_WORK / "jars").resolve(), events, batch, runs)
    text = json.dumps(figures, indent=2)
    (folder / "figures.json").write_text(text + "\n", "utf-8")
    typer.echo(text)


if __name__ == "__main__":
    typer.run(main)
