"""The JSON Schema of a case file: ``python -m spark_cep.cases.document.schema`` prints it, and
``schemas/cases.schema.json`` keeps it."""

from __future__ import annotations

import json
import sys
from typing import Final

from spark_cep.cases.document.shape import CaseFileShape
from spark_cep.pattern.document.schema import cleaned

SCHEMA_ID: Final = "urn:spark-cep:cases"


def write_schema() -> str:
    """Return the JSON Schema of a case file, as the text of its file."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "spark-cep test cases",
        **cleaned(CaseFileShape.model_json_schema(), nulls=False),
    }
    step = schema["$defs"]["CaseStepShape"]
    step["oneOf"] = [{"required": [name]} for name in ("send", "clock", "watermark")]
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(write_schema())
