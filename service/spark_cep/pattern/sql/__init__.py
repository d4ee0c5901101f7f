"""A rule written in SQL: ``SELECT … FROM input MATCH_RECOGNIZE ( … )``, the standard's clause.

``syntax`` reads the text with a grammar (``grammar.lark``) into a *statement*, whose expressions
are cut out and not yet read. ``analysis`` reads those in their places, holds the statement against
the rules of the standard and, where it is known, the type of the input's events, and gives a
*query*, in which every name is resolved. All mistakes are reported at once, each with its place.
``cautions`` says what a stream, which has no end, would never decide, ``work`` what makes one row
cost very much; ``spelling`` writes out what only the type of the events says.

**Meaning.** Names, RUNNING and FINAL, navigation, aggregates and skipping are those of the standard
(ISO/IEC 19075-5), and the preferred match is the first in the order of the pattern, not the
longest. Expressions are those of all rules (:mod:`spark_cep.pattern.expressions`): Spark's
functions and its arithmetic, so ``7 / 2`` is ``3.5``. Beyond the standard: ``WITHIN INTERVAL …``
after the pattern, as Flink SQL has it, and ``COUNT(DISTINCT …)``. ``"price"`` and ```price``` are
names, ``'price'`` is text.

**Left out.** ``INITIAL`` and ``SEEK``, which are for windows; FILTER and ORDER BY in aggregates;
aggregates in SELECT; in FROM, all but an input and a sub-query that picks rows of one; behind the
clause, all but an ORDER BY that says what holds anyway.
"""

from spark_cep.pattern.sql.analysis import examine_query, load_query
from spark_cep.pattern.sql.cautions import endless_parts, order_problems, stream_warnings
from spark_cep.pattern.sql.query import Query
from spark_cep.pattern.sql.spelling import spelled_out
from spark_cep.pattern.sql.syntax import plain_text
from spark_cep.pattern.sql.work import work_warnings

__all__ = [
    "Query",
    "endless_parts",
    "examine_query",
    "load_query",
    "order_problems",
    "plain_text",
    "spelled_out",
    "stream_warnings",
    "work_warnings",
]
