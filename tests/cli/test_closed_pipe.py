"""Commands whose output nobody reads any more, as behind ``| head``, end without a trace.

Every command prints by one of two roads: ``typer.echo``, whose library ends the command with exit
code 1, and the console of :mod:`spark_cep.cli.terminal`, whose library does the same. ``explain``
stands for the first, with ``check``, ``why``, ``dead-letters`` and all output in JSON; ``rules
list`` for the second, with ``state``, which ``tests/e2e/test_operations_page.py`` runs, for it has
a Java process that must be silent, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.rules.test_commands import Job, row

RULE = """id: r
key: k
within: 1 minute
pattern:
  - {step: a, where: "n = 1"}
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", ["explain", "rules list"])
def test_nobody_reads(tmp_path: Path, command: str) -> None:
    """No line on the standard error; the exit code says that not all was written."""
    rule = tmp_path / "r.yaml"
    rule.write_text(RULE, "utf-8")
    job = Job(tmp_path)
    job.rules = [row("ab")]
    words = [*command.split(), *([str(rule)] if command == "explain" else ["-c", str(job.config)])]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "spark_cep.cli.main", *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)
        job.stop()
    assert (ended.stderr, ended.returncode) == ("", 1)
