"""Random expressions as text: most are well typed, the others are sorted out."""

from __future__ import annotations

from random import Random

from spark_cep.pattern.expressions import ExpressionError, check_types, parse
from tests.pattern.expressions.samples import EVENT

_NUMBERS = """
i j l f d e m n 0 1 -7 2.50 3L 0.1D 2147483647 null arr[0] rec.x 1e3 99999999999999999999.5
"""
_LEAVES = {
    "number": [
        "i",
        "j",
        "l",
        "f",
        "d",
        "e",
        "m",
        "n",
        "0",
        "1",
        "-7",
        "2.50",
        "3L",
        "0.1D",
        "2147483647",
        "null",
        "arr[0]",
        "rec.x",
        "mp['a']",
        "1e3",
        "99999999999999999999.5",
    ],
    "text": ["s", "t", "'abc'", "''", "'B'", "rec.y.z", "null", "'2024-02-29'", "'12'", "'é😀'"],
    "truth": ["b", "true", "false", "null", "i = j", "d > e", "s is null"],
    "time": ["ts", "dt", "date '2024-02-29'", "timestamp '1969-12-31 23:59:59.5'", "null"],
}
_FORMS = {
    "number": [
        "({number} + {number})",
        "({number} - {number})",
        "({number} * {number})",
        "({number} / {number})",
        "({number} % {number})",
        "(-({number}))",
        "abs({number})",
        "round({number}, 1)",
        "floor({number})",
        "ceil({number})",
        "sqrt({number})",
        "sign({number})",
        "coalesce({number}, {number})",
        "greatest({number}, {number}, {number})",
        "least({number}, {number})",
        "nullif({number}, {number})",
        "case when {truth} then {number} else {number} end",
        "case {number} when {number} then {number} end",
        "if({truth}, {number}, {number})",
        "length({text})",
        "cast({number} as int)",
        "cast({number} as bigint)",
        "cast({number} as double)",
        "cast({number} as decimal(12, 3))",
        "cast({text} as bigint)",
        "cast({text} as double)",
        "cast({text} as decimal(20, 5))",
        "cast({truth} as int)",
        "year({time})",
        "dayofweek({time})",
        "datediff({time}, {time})",
        "unix_millis({time})",
        "second({time})",
        "element_at(arr, cast({number} as int))",
        "arr[cast({number} as int)]",
        "array({number}, {number})[1]",
    ],
    "text": [
        "upper({text})",
        "lower({text})",
        "trim({text})",
        "({text} || {text})",
        "concat({text}, {text}, {text})",
        "substring({text}, cast({number} as int))",
        "substring({text}, cast({number} as int), cast({number} as int))",
        "left({text}, cast({number} as int))",
        "right({text}, cast({number} as int))",
        "replace({text}, 'b', 'cc')",
        "coalesce({text}, {text})",
        "cast({number} as string)",
        "cast({time} as string)",
        "cast({truth} as string)",
        "if({truth}, {text}, {text})",
        "least({text}, {text})",
    ],
    "truth": [
        "({number} = {number})",
        "({number} <> {number})",
        "({number} < {number})",
        "({number} >= {number})",
        "({number} <=> {number})",
        "({text} < {text})",
        "({text} = {text})",
        "({time} < {time})",
        "({time} = {time})",
        "({truth} and {truth})",
        "({truth} or {truth})",
        "(not ({truth}))",
        "(({truth}) is true)",
        "(({number}) is null)",
        "(({text}) is not null)",
        "({number} in ({number}, {number}))",
        "({text} not in ({text}, {text}))",
        "({number} between {number} and {number})",
        "(({text}) like '%b_%')",
        "contains({text}, {text})",
        "startswith({text}, {text})",
        "array_contains(arr, {number})",
        "cast({text} as boolean)",
        "map_contains_key(mp, {text})",
    ],
    "time": [
        "cast({text} as timestamp)",
        "cast({text} as date)",
        "cast({time} as date)",
        "cast({time} as timestamp)",
        "coalesce({time}, {time})",
        "greatest({time}, {time})",
        "if({truth}, {time}, {time})",
    ],
}


def random_text(random: Random, kind: str, depth: int) -> str:
    """One expression of a kind, at most ``depth`` operators deep."""
    if depth == 0 or random.random() < 0.15:
        return random.choice(_LEAVES[kind])
    form = random.choice(_FORMS[kind])
    for inner in _LEAVES:
        while f"{{{inner}}}" in form:
            form = form.replace(f"{{{inner}}}", random_text(random, inner, depth - 1), 1)
    return form


def random_expressions(random: Random, count: int) -> list[str]:
    """``count`` expressions that pass the type check."""
    found: list[str] = []
    while len(found) < count:
        text = random_text(random, random.choice(list(_FORMS)), random.choice([1, 2, 2, 3, 4]))
        try:
            check_types(parse(text), EVENT, {})
        except ExpressionError:
            continue
        found.append(text)
    return found


_OPERATORS = ["+", "-", "*", "/", "%", "=", "<", ">=", "<>", "<=>", "AND", "OR", "AND", "OR"]
_ENDINGS = ["", "", "", "", "", "", " IS NULL", " IS NOT NULL", " IS TRUE", " IS DISTINCT FROM y"]
_ENDINGS += [" BETWEEN x AND y + 1", " IN (1, 2)", " NOT IN (x, 2)", " LIKE 'a%'"]
_ENDINGS += [" RLIKE 'a'", " NOT RLIKE 'a'", " ILIKE 'a'", " NOT ILIKE 'a'"]


def random_chain(random: Random, length: int = 4) -> str:
    """Operators in a row with few parentheses; most are refused as unclear."""
    text = _link(random)
    for _ in range(random.randint(0, length)):
        text += f" {random.choice(_OPERATORS)} {_link(random)}{random.choice(_ENDINGS)}"
    return text


def _link(random: Random) -> str:
    name = random.choice("abcdxyz")
    return random.choice([name] * 8 + [f"-{name}", "- 3", f"NOT {name}", f"({name} + 1)"])
