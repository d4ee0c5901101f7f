"""Functions that people look for and that are not in the list: why, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping

_NON_DETERMINISTIC = "it gives another answer each time"
_OUTSIDE = "it reaches outside the event"
_NON_DETERMINISTIC_NAMES = """
RAND RANDOM RANDN UUID NOW CURRENT_TIMESTAMP CURRENT_DATE SHUFFLE CURRENT_TIME LOCALTIMESTAMP
MONOTONICALLY_INCREASING_ID RANDSTR GETDATE TODAY
"""
_OUTSIDE_NAMES = """
REFLECT TRY_REFLECT JAVA_METHOD INPUT_FILE_NAME CURRENT_USER USER SESSION_USER CURRENT_DATABASE
CURRENT_CATALOG VERSION SPARK_PARTITION_ID INPUT_FILE_BLOCK_START INPUT_FILE_BLOCK_LENGTH AI_QUERY
HTTP_REQUEST
"""
WITHHELD: Mapping[str, str] = {
    **dict.fromkeys(_NON_DETERMINISTIC_NAMES.split(), _NON_DETERMINISTIC),
    **dict.fromkeys(_OUTSIDE_NAMES.split(), _OUTSIDE),
}
_JOINED = "COLLECT(step.column), or in SQL ARRAY_AGG(A.column)"
INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(("STRING_AGG", "LISTAGG", "GROUP_CONCAT"), _JOINED),
    **dict.fromkeys(
        ("MATCH_ROWTIME", "MATCH_PROCTIME"), "the column that ORDER BY names, such as LAST(ts)"
    ),
    "COLLECT_SET": "COLLECT, or COUNT(DISTINCT step.column)",
    "WEEKDAY": "DAYOFWEEK (1 is Sunday)",
    "APPROX_COUNT_DISTINCT": "COUNT(DISTINCT step.column)",
    "MEDIAN": "AVG",
    "DECODE": "CASE x WHEN 1 THEN … ELSE … END",
    "ROW_NUMBER": "COUNT(*), the rows so far",
    "MATCH_SEQUENCE_NUMBER": "COUNT(*), the rows so far",
    "EXTRACT": "YEAR, MONTH, DAY, HOUR, MINUTE or SECOND",
    "DATE_PART": "YEAR, MONTH, DAY, HOUR, MINUTE or SECOND",
    "REGEXP_SUBSTR": "REGEXP_EXTRACT(text, pattern, 0)",
    "REGEXP_INSTR": "INSTR or RLIKE",
    "REGEXP_EXTRACT_ALL": "REGEXP_EXTRACT",
    "CHARINDEX": "LOCATE(part, text)",
    "STRPOS": "INSTR(text, part)",
    "TRUNC": "DATE_TRUNC(unit, ts) or FLOOR",
    "UNIX_TIMESTAMP": "UNIX_SECONDS(ts)",
    "TO_TIMESTAMP": "CAST(x AS TIMESTAMP)",
    "FROM_UNIXTIME": "TIMESTAMP_SECONDS(n)",
    "DATEADD": "DATE_ADD(day, n), or ts + INTERVAL 5 MINUTES",
    "TIMESTAMPADD": "ts + INTERVAL 5 MINUTES",
    "AGGREGATE": "EXISTS, FORALL or FILTER",
    "REDUCE": "EXISTS, FORALL or FILTER",
    "TRANSFORM": "EXISTS, FORALL or FILTER",
    "ANY_MATCH": "EXISTS(array, x -> condition)",
    "ALL_MATCH": "FORALL(array, x -> condition)",
    "LAG": "LAST(step.column), or in SQL PREV(column)",
    "LEAD": "in SQL NEXT(column)",
    "PREV": "step.column or LAST(step.column), with `after: next` for the event directly before",
    "NEXT": "a further step, with `after: next`",
}
