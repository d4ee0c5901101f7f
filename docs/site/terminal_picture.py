"""Draws docs/terminal.svg: what the tutorial's rule finds in the tutorial's events.

``python docs/site/terminal_picture.py`` runs the commands in a folder of their own. The picture
loads no font from elsewhere.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
PICTURE = ROOT / "docs" / "terminal.svg"

_WIDTH = 137
_FILE = re.compile(
    r"`(rules/card-testing\.yaml|payments\.jsonl)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_FONT_FACES = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_COMMANDS = (
    ("cat", "rules/card-testing.yaml"),
    ("spark-cep", "run", "--input", "payments.jsonl", "--rules", "rules", "-q"),
)


def session(folder: Path) -> Text:
    """The commands with what they print, in colours."""
    variables = {**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "200"}
    shown = Text()
    for command in _COMMANDS:
        words = (
            [sys.executable, "-m", "spark_cep.cli.main"] if command[0] == "spark-cep" else ["cat"]
        )
        ran = subprocess.run(
            [*words, *command[1:]],
            cwd=folder,
            env=variables,
            check=True,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        shown.append("$ ", "bold green").append(" ".join(command) + "\n", "bold")
        shown.append(Text.from_ansi(ran.stdout)).append("\n")
    return shown


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "rules").mkdir()
        for name, text in _FILE.findall(PAGE.read_text("utf-8")):
            (folder / name).write_text(text, "utf-8")
        console = Console(record=True, width=_WIDTH, file=io.StringIO())
        console.print(session(folder), soft_wrap=True)
    svg = console.export_svg(title="spark-cep", unique_id="terminal")
    svg = _FONT_FACES.sub("", svg).replace("Fira Code, monospace", _FONT)
    PICTURE.write_text(svg.replace("font-family: Fira Code", f"font-family: {_FONT}"), "utf-8")


if __name__ == "__main__":
    main()
