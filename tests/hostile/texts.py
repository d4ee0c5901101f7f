"""Conditions on a long text: each text function, LIKE and regular expression, in the forms that
cost most where an implementation is careless."""

from __future__ import annotations

from collections.abc import Mapping

#: By function; conditions on the text column ``name``.
CONDITIONS: Mapping[str, str] = {
    "LIKE": "name LIKE '%a%b%c'",
    "LIKE _": "name LIKE '%a_a_%_b%_%c'",
    "ILIKE": "name ILIKE '%A%B%C'",
    "RLIKE": "name RLIKE '^(a+)+$|(a|aa)+b|(.*)c(.*)d'",
    "REGEXP_EXTRACT": "REGEXP_EXTRACT(name, '(a*)*(b?)c$', 1) = 'a'",
    "REGEXP_REPLACE": "REGEXP_REPLACE(name, 'a|b', 'xy') = 'a'",
    "REGEXP_COUNT": "REGEXP_COUNT(name, 'a{1,50}b?') > 3",
    "UPPER": "UPPER(name) = 'A'",
    "LOWER": "LOWER(name) = 'a'",
    "INITCAP": "INITCAP(name) = 'A'",
    "TRIM": "TRIM(name) = 'a'",
    "LTRIM": "LTRIM(name) = 'a'",
    "RTRIM": "RTRIM(name) = 'a'",
    "LENGTH": "LENGTH(name) > 100",
    "SUBSTRING": "SUBSTRING(name, -100, 50) = 'a'",
    "LEFT": "LEFT(name, 800000) = 'a'",
    "RIGHT": "RIGHT(name, 800000) = 'a'",
    "CONCAT": "CONCAT(name, '-', name) = 'a'",
    "CONCAT_WS": "CONCAT_WS('-', name, name) = 'a'",
    "REPLACE": "REPLACE(name, 'a', 'bcd') = 'a'",
    "TRANSLATE": "TRANSLATE(name, 'abc', 'xy') = 'a'",
    "REPEAT": "REPEAT(name, 3) = 'a'",
    "REVERSE": "REVERSE(name) = 'a'",
    "LPAD": "LPAD(name, 10000, 'ab') = 'a'",
    "RPAD": "RPAD(name, 10000, 'ab') = 'a'",
    "STARTSWITH": "STARTSWITH(name, RIGHT(name, 400000))",
    "ENDSWITH": "ENDSWITH(name, LEFT(name, 400000))",
    "CONTAINS": "CONTAINS(name, CONCAT(LEFT(name, 400000), 'b'))",
    "INSTR": "INSTR(name, CONCAT(LEFT(name, 400000), 'b')) > 1",
    "LOCATE": "LOCATE(CONCAT(LEFT(name, 400000), 'b'), name, 5) > 1",
    "SPLIT": "SIZE(SPLIT(name, 'a')) > 5",
    "SPLIT_PART": "SPLIT_PART(name, 'a', -5) = 'b'",
    "CAST": "CAST(name AS DECIMAL(38, 10)) > 1",
    "CAST to TIMESTAMP": "CAST(name AS TIMESTAMP) > TIMESTAMP '2026-01-31 23:30:00'",
    "order": "name < CONCAT(name, 'a')",
}
