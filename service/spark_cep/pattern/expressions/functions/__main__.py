"""``python -m spark_cep.pattern.expressions.functions docs/rules.md`` writes the tables of
functions between their markers in that page."""

from __future__ import annotations

import sys
from pathlib import Path

from spark_cep.pattern.expressions.functions.documentation import with_section

if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_section(page.read_text("utf-8")), "utf-8")
