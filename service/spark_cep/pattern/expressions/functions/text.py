"""Functions of text. Positions count characters from 1. All take time in proportion to the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from spark_cep.pattern.expressions.functions.row import (
    TEXT_AND_NUMBER,
    TEXT_NUMBER,
    TEXT_TEST,
    TEXTS,
    Function,
    Kinds,
    case_mapped,
    summed,
    takes,
)
from spark_cep.pattern.expressions.values.type_rules import is_open
from spark_cep.pattern.types import BINARY, INT, STRING, ArrayType, SqlType

MAX_PADDED = 10_000
_LONGEST = 2**31 - 1


def substring(text: str, position: int, length: int = _LONGEST) -> str:
    """SQL's SUBSTRING: positions from 1, negative ones from the end."""
    size = len(text)
    start = position - 1 if position > 0 else size + position if position < 0 else 0
    end = start + length
    return text[max(start, 0) : max(end, 0)] if end > start else ""


def _left(text: str, count: int) -> str:
    return text[:count] if count > 0 else ""


def _right(text: str, count: int) -> str:
    return text[-count:] if count > 0 else ""


def _locate(part: str, text: str, position: int = 1) -> int:
    return text.find(part, position - 1) + 1 if position > 0 else 0


def _split(text: str, separator: str) -> list[str]:
    return text.split(separator) if separator else list(text)


def _split_part(text: str, separator: str, number: int) -> str | None:
    if number == 0:
        return None
    parts = text.split(separator) if separator else [text]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _initcap(text: str) -> str:
    return " ".join(word.capitalize() for word in text.split(" "))


def _replacing(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new) if old else text


def _replaced(sizes: Sequence[int], constants: Sequence[Any]) -> int:
    old, new = constants[1:]
    return sizes[0] * max(1, -(-len(new) // max(1, len(old))))


def _repeating(count: int) -> Callable[[str], str]:
    return lambda text: text * count


def _repeated(sizes: Sequence[int], constants: Sequence[Any]) -> int:
    return sizes[0] * max(1, int(constants[1]))


def _padding(*, left: bool) -> Callable[..., Callable[[str], str]]:
    def prepare(length: int, fill: str = " ") -> Callable[[str], str]:
        if length > MAX_PADDED:
            raise ValueError(f"the length is {length}; the limit is {MAX_PADDED}")
        length = max(0, length)
        padding = (fill * length)[:length]

        def run(text: str) -> str:
            missing = length - len(text)
            if missing <= 0:
                return text[:length]
            return padding[:missing] + text if left else text + padding[:missing]

        return run

    return prepare


def _padded(_: Sequence[int], constants: Sequence[Any]) -> int:
    return max(0, int(constants[1]))


def _translating(old: str, new: str) -> Callable[[str], str]:
    table: dict[int, str | None] = {}
    for place, character in enumerate(old):
        table.setdefault(ord(character), new[place] if place < len(new) else None)
    return lambda text: text.translate(table)


def _joining(separator: str) -> Callable[..., str]:
    def run(*given: Any) -> str:
        parts: list[str] = []
        for value in given:
            parts += [value] if isinstance(value, str) else value or ()
        return separator.join(part for part in parts if part is not None)

    return run


def _joined(sizes: Sequence[int], constants: Sequence[Any]) -> int:
    return sum(sizes[1:]) * (1 + len(constants[0]))


def _texts_or_arrays(kinds: Kinds) -> SqlType | str:
    for position, kind in enumerate(kinds):
        if kind not in (STRING, ArrayType(STRING)) and not is_open(kind):
            return f"argument {position + 1} is {kind}; it must be STRING or ARRAY<STRING>"
    return STRING


TEXT: dict[str, Function] = {
    "UPPER": Function(
        arguments=(1, 1),
        result=TEXTS,
        evaluate=str.upper,
        size=case_mapped,
        doc="In upper case.",
        example="UPPER('abc')",
        expected="ABC",
    ),
    "LOWER": Function(
        arguments=(1, 1),
        result=TEXTS,
        evaluate=str.lower,
        size=case_mapped,
        doc="In lower case.",
        example="LOWER('ABC')",
        expected="abc",
    ),
    "INITCAP": Function(
        arguments=(1, 1),
        result=TEXTS,
        evaluate=_initcap,
        size=case_mapped,
        doc="The first letter of each word in upper case, the others in lower case.",
        example="INITCAP('new YORK')",
        expected="New York",
    ),
    "TRIM": Function(
        arguments=(1, 1),
        result=TEXTS,
        evaluate=lambda text: text.strip(" "),
        doc="Without spaces at both ends.",
        example="TRIM('  a b ')",
        expected="a b",
    ),
    "LTRIM": Function(
        arguments=(1, 1),
        result=TEXTS,
        evaluate=lambda text: text.lstrip(" "),
        doc="Without spaces at the start.",
        example="LTRIM('  a ')",
        expected="a ",
    ),
    "RTRIM": Function(
        arguments=(1, 1),
        result=TEXTS,
        evaluate=lambda text: text.rstrip(" "),
        doc="Without spaces at the end.",
        example="RTRIM(' a  ')",
        expected=" a",
    ),
    "LENGTH": Function(
        arguments=(1, 1),
        result=takes((STRING, BINARY), gives=INT),
        evaluate=len,
        cheap=True,
        doc="How many characters, or bytes of BINARY.",
        example="LENGTH('abc')",
        expected=3,
    ),
    "SUBSTRING": Function(
        arguments=(2, 3),
        result=TEXT_AND_NUMBER,
        evaluate=substring,
        doc="From a position on, or so many characters from there; a negative position counts "
        "from the end.",
        example="SUBSTRING('abcdef', 2, 3)",
        expected="bcd",
    ),
    "LEFT": Function(
        arguments=(2, 2),
        result=TEXT_AND_NUMBER,
        evaluate=_left,
        doc="The first characters.",
        example="LEFT('abc', 2)",
        expected="ab",
    ),
    "RIGHT": Function(
        arguments=(2, 2),
        result=TEXT_AND_NUMBER,
        evaluate=_right,
        doc="The last characters.",
        example="RIGHT('abc', 2)",
        expected="bc",
    ),
    "CONCAT": Function(
        arguments=(1, None),
        result=TEXTS,
        evaluate=lambda *texts: "".join(texts),
        size=summed,
        doc="The texts joined, as `||` does; NULL when one is NULL.",
        example="CONCAT('a', 'b', 'c')",
        expected="abc",
    ),
    "CONCAT_WS": Function(
        arguments=(1, None),
        result=_texts_or_arrays,
        prepare=_joining,
        constants={0: str},
        nulls=True,
        size=_joined,
        doc="Texts and arrays of texts joined with a constant separator; NULLs are left out.",
        example="CONCAT_WS('-', 'a', NULL, tags)",
        expected="a-new-vip",
    ),
    "REPLACE": Function(
        arguments=(3, 3),
        result=TEXTS,
        prepare=_replacing,
        constants={1: str, 2: str},
        size=_replaced,
        doc="Each occurrence of a constant replaced by another.",
        example="REPLACE('a-b-c', '-', '+')",
        expected="a+b+c",
    ),
    "TRANSLATE": Function(
        arguments=(3, 3),
        result=TEXTS,
        prepare=_translating,
        constants={1: str, 2: str},
        doc="Each character of the first constant replaced by the one at its place in the second, "
        "or removed.",
        example="TRANSLATE('a-b.c', '-.', '_')",
        expected="a_bc",
    ),
    "REPEAT": Function(
        arguments=(2, 2),
        result=TEXT_AND_NUMBER,
        prepare=_repeating,
        constants={1: int},
        size=_repeated,
        doc="The text a constant number of times.",
        example="REPEAT('ab', 3)",
        expected="ababab",
    ),
    "REVERSE": Function(
        arguments=(1, 1),
        result=TEXTS,
        evaluate=lambda text: text[::-1],
        doc="The characters in reverse order.",
        example="REVERSE('abc')",
        expected="cba",
    ),
    "LPAD": Function(
        arguments=(2, 3),
        result=takes(STRING, INT, STRING, gives=STRING),
        prepare=_padding(left=True),
        constants={1: int, 2: str},
        size=_padded,
        doc="Filled at the start (with spaces, or a constant) to a constant length of at most "
        "10,000, or cut to it.",
        example="LPAD('7', 3, '0')",
        expected="007",
    ),
    "RPAD": Function(
        arguments=(2, 3),
        result=takes(STRING, INT, STRING, gives=STRING),
        prepare=_padding(left=False),
        constants={1: int, 2: str},
        size=_padded,
        doc="As `LPAD`, at the end.",
        example="RPAD('7', 3, '.')",
        expected="7..",
    ),
    "STARTSWITH": Function(
        arguments=(2, 2),
        result=TEXT_TEST,
        evaluate=str.startswith,
        doc="Whether the text starts with the other.",
        example="STARTSWITH('abc', 'ab')",
        expected=True,
    ),
    "ENDSWITH": Function(
        arguments=(2, 2),
        result=TEXT_TEST,
        evaluate=str.endswith,
        doc="Whether the text ends with the other.",
        example="ENDSWITH('abc', 'bc')",
        expected=True,
    ),
    "CONTAINS": Function(
        arguments=(2, 2),
        result=TEXT_TEST,
        evaluate=lambda text, part: part in text,
        doc="Whether the other is in the text.",
        example="CONTAINS('abc', 'b')",
        expected=True,
    ),
    "INSTR": Function(
        arguments=(2, 2),
        result=TEXT_NUMBER,
        evaluate=lambda text, part: text.find(part) + 1,
        doc="The position of the other in the text; 0 when it is not there.",
        example="INSTR('abc', 'c')",
        expected=3,
    ),
    "LOCATE": Function(
        arguments=(2, 3),
        result=takes(STRING, STRING, INT, gives=INT),
        evaluate=_locate,
        doc="`LOCATE(part, text)`: the position of a part, looked for from a position on.",
        example="LOCATE('b', 'abcb', 3)",
        expected=4,
    ),
    "SPLIT": Function(
        arguments=(2, 2),
        result=takes(STRING, gives=ArrayType(STRING)),
        evaluate=_split,
        doc="The parts between separators. The separator is plain text, not a regular expression.",
        example="SPLIT('a,b,c', ',')",
        expected=["a", "b", "c"],
    ),
    "SPLIT_PART": Function(
        arguments=(3, 3),
        result=takes(STRING, STRING, INT, gives=STRING),
        evaluate=_split_part,
        doc="One of these parts, counted from 1, or from the end when negative; empty when there "
        "are not so many.",
        example="SPLIT_PART('a,b,c', ',', -1)",
        expected="c",
    ),
}
