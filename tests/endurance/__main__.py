"""``python -m tests.endurance``: the long run; prints tables, and fails if outputs differ, a change
takes too long, or the job takes more than twice what a fresh one does."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from tests.conftest import JARS
from tests.endurance.report import markdown
from tests.endurance.run import Options, Run


def main(
    changes: Annotated[int, typer.Option(help="Changes of rules.", min=1)] = 1_000,
    minutes: Annotated[float, typer.Option(help="In which they are made.", min=0.1)] = 30,
    rate: Annotated[int, typer.Option(help="Events a second.", min=400)] = 20_000,
    share: Annotated[
        float, typer.Option(help="Of events, those that rules read.", min=0, max=1)
    ] = 0.01,
    settle: Annotated[
        float, typer.Option(help="Minutes after the last change, and of a fresh job.", min=0.2)
    ] = 10,
    warm_up: Annotated[float, typer.Option(help="Seconds before the first change.")] = 60,
    seed: Annotated[int, typer.Option(help="Of everything random; 0: from the clock.")] = 0,
    figures: Annotated[Path | None, typer.Option(help="File for figures and samples.")] = None,
) -> None:
    """Change rules under load, and compare what the job wrote, and what it takes afterwards."""
    options = Options(
        changes, minutes, rate, share, settle, warm_up, seed or time.time_ns() % 10**6
    )
    typer.echo(f"seed {options.seed}")
    began = time.monotonic()

    def say(what: str) -> None:
        typer.echo(f"{time.monotonic() - began:6.0f} s  {what}")

    with tempfile.TemporaryDirectory(prefix="spark-cep-endurance-") as folder:
        result = Run(options, Path(folder) / "run", JARS, say).run()
    typer.echo(markdown(result))
    if figures is not None:
        figures.write_text(json.dumps(result.document(), indent=1) + "\n", "utf-8")
    sys.exit(bool(result.failures))


if __name__ == "__main__":
    typer.run(main)
