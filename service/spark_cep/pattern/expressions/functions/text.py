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
    if position <= 0:
        return 0
    return text.find(part, position - 1) + 1 if part else 1


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
    "UPPER": Function((1, 1), TEXTS, str.upper, size=case_mapped),
    "LOWER": Function((1, 1), TEXTS, str.lower, size=case_mapped),
    "INITCAP": Function((1, 1), TEXTS, _initcap, size=case_mapped),
    "TRIM": Function((1, 1), TEXTS, lambda text: text.strip(" ")),
    "LTRIM": Function((1, 1), TEXTS, lambda text: text.lstrip(" ")),
    "RTRIM": Function((1, 1), TEXTS, lambda text: text.rstrip(" ")),
    "LENGTH": Function((1, 1), takes((STRING, BINARY), gives=INT), len, cheap=True),
    "SUBSTRING": Function((2, 3), TEXT_AND_NUMBER, substring),
    "LEFT": Function((2, 2), TEXT_AND_NUMBER, _left),
    "RIGHT": Function((2, 2), TEXT_AND_NUMBER, _right),
    "CONCAT": Function((1, None), TEXTS, lambda *texts: "".join(texts), size=summed),
    "CONCAT_WS": Function(
        (1, None), _texts_or_arrays, prepare=_joining, constants={0: str}, nulls=True, size=_joined
    ),
    "REPLACE": Function(
        (3, 3), TEXTS, prepare=_replacing, constants={1: str, 2: str}, size=_replaced
    ),
    "TRANSLATE": Function((3, 3), TEXTS, prepare=_translating, constants={1: str, 2: str}),
    "REPEAT": Function(
        (2, 2), TEXT_AND_NUMBER, prepare=_repeating, constants={1: int}, size=_repeated
    ),
    "REVERSE": Function((1, 1), TEXTS, lambda text: text[::-1]),
    "LPAD": Function(
        (2, 3),
        takes(STRING, INT, STRING, gives=STRING),
        prepare=_padding(left=True),
        constants={1: int, 2: str},
        size=_padded,
    ),
    "RPAD": Function(
        (2, 3),
        takes(STRING, INT, STRING, gives=STRING),
        prepare=_padding(left=False),
        constants={1: int, 2: str},
        size=_padded,
    ),
    "STARTSWITH": Function((2, 2), TEXT_TEST, str.startswith),
    "ENDSWITH": Function((2, 2), TEXT_TEST, str.endswith),
    "CONTAINS": Function((2, 2), TEXT_TEST, lambda text, part: part in text),
    "INSTR": Function((2, 2), TEXT_NUMBER, lambda text, part: text.find(part) + 1),
    "LOCATE": Function((2, 3), takes(STRING, STRING, INT, gives=INT), _locate),
    "SPLIT": Function((2, 2), takes(STRING, gives=ArrayType(STRING)), _split),
    "SPLIT_PART": Function((3, 3), takes(STRING, STRING, INT, gives=STRING), _split_part),
}
