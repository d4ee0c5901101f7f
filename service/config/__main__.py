"""Prints what is generated from the settings.

``python -m service.config reference > docs/configuration.md`` and
``python -m service.config schema > schemas/config.schema.json``.
"""

from __future__ import annotations

import json
import sys

from service.config.reference import config_schema, render_reference


def main(arguments: list[str]) -> int:
    """Print the reference or the schema; anything else is a mistake."""
    match arguments:
        case ["reference"]:
            sys.stdout.write(render_reference())
        case ["schema"]:
            sys.stdout.write(json.dumps(config_schema(), indent=2) + "\n")
        case _:
            sys.stderr.write("usage: python -m service.config reference|schema\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
