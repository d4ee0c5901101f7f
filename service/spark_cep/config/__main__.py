"""Prints what is generated from the settings.

``python -m spark_cep.config reference > docs/configuration.md``,
``python -m spark_cep.config schema > schemas/config.schema.json`` and
``python -m spark_cep.config chart helm/values.schema.json``, which renews the settings in that
file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from spark_cep.config.reference import config_schema, render_reference, with_settings


def main(arguments: list[str]) -> int:
    """Print the reference or the schema, or write that of a chart; anything else is a mistake."""
    match arguments:
        case ["reference"]:
            sys.stdout.write(render_reference())
        case ["schema"]:
            sys.stdout.write(json.dumps(config_schema(), indent=2) + "\n")
        case ["chart", name]:
            path = Path(name)
            values = with_settings(json.loads(path.read_text("utf-8")))
            path.write_text(json.dumps(values, indent=2) + "\n", "utf-8")
        case _:
            sys.stderr.write("usage: python -m spark_cep.config reference|schema|chart FILE\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
