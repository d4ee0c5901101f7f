"""spark-cep: complex event processing on Kafka and Spark.

``from spark_cep import Pattern, to_yaml`` is for rules in Python; ``spark_cep.testkit`` tests them.
What is named here is imported when it is first asked for: the parser of expressions takes a moment.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spark_cep.pattern.document.canonical import to_yaml
    from spark_cep.pattern.fluent import Pattern

__all__ = ["Pattern", "__version__", "to_yaml"]

__version__ = version("spark-cep")

if not TYPE_CHECKING:  # type checkers see the imports above, and still find misspelt names

    def __getattr__(name: str) -> object:
        modules = {
            "Pattern": "spark_cep.pattern.fluent",
            "to_yaml": "spark_cep.pattern.document.canonical",
        }
        if name not in modules:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)
