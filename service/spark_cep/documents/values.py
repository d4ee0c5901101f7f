"""Refusals of values by a model, and the type of durations, which all documents share."""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticCustomError

from spark_cep.durations import ALLOWED, DurationError, parse_duration


def refused(allowed: str, wrong: str = "") -> PydanticCustomError:
    """The error of a value that is not what is ``allowed``.

    ``wrong`` says what is wrong with it, as the end of a sentence that the value begins. Neither
    may hold the value itself: it may be a secret.
    """
    return PydanticCustomError("refused", "{allowed}", {"allowed": allowed, "wrong": wrong})


def contradiction(sentence: str, at: str = "") -> PydanticCustomError:
    """The error of values that do not go together; ``at``: the one to point to, from here."""
    return PydanticCustomError("contradiction", "{sentence}", {"sentence": sentence, "at": at})


def duration(value: Any) -> int:
    """The milliseconds of a duration in a document; raises the error of :func:`refused`."""
    if not isinstance(value, str):
        why = ": its unit is missing" if isinstance(value, int | float) else ""
        raise refused(ALLOWED, f"is not a duration{why}")
    try:
        return parse_duration(value)
    except DurationError as error:
        raise refused(ALLOWED, error.wrong) from None
