"""Pictures of rules: the drawing of ``spark-cep explain --format dot``, laid out by Graphviz.

A picture names the drawing that it was made from by a digest, so that it can be told whether it is
of the rule as it is without the program ``dot``.
"""

from __future__ import annotations

import re
import subprocess
from hashlib import sha256
from pathlib import Path

from spark_cep.cli.authoring.explaining import rules_to_explain, written
from spark_cep.cli.authoring.forms import RuleForm


def drawing(rule: Path) -> str:
    """The DOT text of a rule file."""
    return written(rules_to_explain(rule, (), ()), RuleForm.DOT)


def mark(dot: str) -> str:
    """The line by which a picture names its drawing."""
    return f"<!-- of the drawing {sha256(dot.encode()).hexdigest()[:16]} -->"


def picture(dot: str) -> str:
    """The drawing as SVG, which takes the program ``dot``."""
    command = ["dot", "-Tsvg", "-Gbgcolor=white"]
    laid_out = subprocess.run(command, input=dot, capture_output=True, text=True, check=True)
    svg = laid_out.stdout[laid_out.stdout.index("<svg") :]
    svg = re.sub(r"<!--.*?-->\n?|<title>.*?</title>\n?", "", svg, flags=re.DOTALL)
    return f"{mark(dot)}\n{svg}"
