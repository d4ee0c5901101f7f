"""sqlglot's Spark dialect, cut down so that it changes nothing of what was written.

Calls stay calls by name with all their arguments (sqlglot would rename some and drop arguments of
others), so that the allow-list in ``syntax`` sees what the author wrote. Only CASE and CAST, which
have a grammar of their own, keep their parsers. Number suffixes are left to ``lexing``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark

_WRITTEN = "written"


def _only(parsers: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: parser for name, parser in parsers.items() if name in names}


class _ExpressionDialect(Spark):
    """Spark SQL without functions that sqlglot knows by heart."""

    class Tokenizer(Spark.Tokenizer):
        """Spark's tokens; ``5L`` stays one token."""

        NUMERIC_LITERALS: ClassVar[dict[str, str]] = {}

    class Parser(Spark.Parser):  # type: ignore[valid-type, misc]  # an alias in sqlglot
        """Spark's grammar; every function is anonymous."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _only(
            Spark.Parser.FUNCTION_PARSERS, "CAST", "TRY_CAST"
        )
        # -> stands for a lambda alone, not for a path into JSON.
        COLUMN_OPERATORS: ClassVar[dict[Any, Any]] = {
            kind: parser
            for kind, parser in Spark.Parser.COLUMN_OPERATORS.items()
            if kind is not TokenType.ARROW
        }
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = _only(
            Spark.Parser.NO_PAREN_FUNCTION_PARSERS, "CASE"
        )

        def _parse_paren(self) -> exp.Expr | None:
            tree: exp.Expr | None = super()._parse_paren()
            if isinstance(tree, exp.Paren):
                tree.meta[_WRITTEN] = True
            return tree


_DIALECT = _ExpressionDialect()


def is_written(tree: exp.Paren) -> bool:
    """Return whether parentheses stand in the text; sqlglot adds its own, not always where Spark
    would."""
    return bool(tree.meta.get(_WRITTEN))


def tokenize(text: str) -> list[Token]:
    """Cuts the text; raises ``sqlglot.errors.TokenError``."""
    return list(_DIALECT.tokenize(text))


def parse_tokens(tokens: list[Token], text: str) -> list[exp.Expr | None]:
    """The statements that the tokens make; raises ``sqlglot.errors.ParseError``."""
    return list(_DIALECT.parser().parse(tokens, text))
