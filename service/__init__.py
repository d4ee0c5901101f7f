"""spark-cep: complex event processing on Kafka and Spark.

``from service import Pattern, to_yaml`` is for rules in Python; ``service.testkit`` tests them.
What is named here is imported when it is first asked for: the parser of expressions takes a moment.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from service.pattern.canonical import to_yaml
    from service.pattern.fluent import Pattern

__all__ = ["Pattern", "__version__", "to_yaml"]

__version__ = version("spark-cep")

if not TYPE_CHECKING:  # type checkers see the imports above, and still find misspelt names

    def __getattr__(name: str) -> object:
        modules = {"Pattern": "service.pattern.fluent", "to_yaml": "service.pattern.canonical"}
        if name not in modules:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)
