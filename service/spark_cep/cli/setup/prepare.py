"""``spark-cep prepare``: compiles the code that this machine runs, and makes the archive of Java
classes that jobs and commands start with."""

from __future__ import annotations

import os
import time
from typing import Annotated, Final

import typer

_FOLDER: Final = "SPARK_CEP__SPARK__CLASSES_FOLDER"


def prepare(
    code_only: Annotated[
        bool, typer.Option("--code-only", help="Compile alone; make no archive of Java classes.")
    ] = False,
) -> None:
    """Compile the matcher for this machine, once; otherwise the first start or test compiles it.
    Then archive the Java classes that a start of Spark loads, with which it takes less time."""
    from spark_cep.columns.compilation import compilation_noticed
    from spark_cep.pipeline import compiled_code

    took: list[float] = []
    with compilation_noticed(lambda: typer.echo("compiling: up to five minutes"), took.append):
        compiled_code.prepare()
    typer.echo(f"compiled in {took[0]:.0f} s" if took else "everything is compiled already")
    if not code_only:
        _archive_classes()


def _archive_classes() -> None:
    """Make the archive; where that fails, starts take longer, and nothing else is missing."""
    from spark_cep.cli.terminal import note
    from spark_cep.errors import StartError
    from spark_cep.pipeline.spark.prepared_classes import make_archive, prepared_classes

    if os.environ.get(_FOLDER):
        note(f"no archive of Java classes is made: {_FOLDER} names the folder of one")
        return
    began = time.monotonic()
    try:
        if prepared_classes() is not None:
            typer.echo("the Java classes are archived already")
            return
        typer.echo("archiving Java classes: up to a minute")
        make_archive()
    except StartError as error:
        note(f"no archive of Java classes, so each start of Spark takes longer: {error}")
        return
    typer.echo(f"archived in {time.monotonic() - began:.0f} s")
