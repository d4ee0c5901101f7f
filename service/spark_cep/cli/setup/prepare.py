"""``spark-cep prepare``: compiles the code that this machine runs."""

from __future__ import annotations

import typer


def prepare() -> None:
    """Compile the matcher for this machine, once. Otherwise the first start or test compiles it."""
    from spark_cep.columns.compilation import compilation_noticed
    from spark_cep.pipeline import compiled_code

    took: list[float] = []
    with compilation_noticed(lambda: typer.echo("compiling: up to three minutes"), took.append):
        compiled_code.prepare()
    typer.echo(f"compiled in {took[0]:.0f} s" if took else "everything is compiled already")
