"""The list of events in docs/logs.md is what the code logs."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.docs.logs_page import events
from tests.sources import ROOT, texts, trees

LEVELS = {"debug": "debug", "info": "info", "warning": "warning", "error": "error"}
LEVELS |= {"exception": "error", "critical": "critical"}
#: Lines of others, which go through Python's logging.
OF_OTHERS = {"library_log", "spark_log", "spark_output", "driver_output"}


def _logged() -> Iterator[tuple[str, str, frozenset[str], str]]:
    """Event, level, names of values and place of every call of a logger in the code."""
    for file, tree in trees(r"\b_log\b"):
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            for method in _methods(call.func):
                if method not in LEVELS:
                    continue
                place = f"{file.relative_to(ROOT)}:{call.lineno}"
                values = frozenset(word.arg for word in call.keywords if word.arg is not None)
                for name in _names(call.args[0], place):
                    yield name, LEVELS[method], values, place


def _methods(function: ast.expr) -> Iterator[str]:
    """What may be called: the method of ``_log``, also one of two by a condition."""
    match function:
        case ast.IfExp():
            yield from _methods(function.body)
            yield from _methods(function.orelse)
        case ast.Attribute(value=ast.Name(id="_log")):
            yield function.attr


def _names(argument: ast.expr, place: str) -> Iterator[str]:
    if isinstance(argument, ast.IfExp):
        yield from _names(argument.body, place)
        yield from _names(argument.orelse, place)
        return
    assert isinstance(argument, ast.Constant), f"{place}: the event's name is no constant"
    yield str(argument.value)


def test_every_event_is_in_the_list() -> None:
    """With its level, and with no values but those that the list has."""
    listed = events()
    for name, level, values, place in _logged():
        assert name in listed, f"{place}: {name} is not in the list"
        assert level in listed[name].levels, f"{place}: {name} at {level}"
        unknown = values - {*listed[name].values, "batch", "rule"}
        assert not unknown, f"{place}: {name} with {unknown}"


def test_every_event_of_the_list_is_logged() -> None:
    """None is left of code that is gone."""
    assert {name for name, *_ in _logged()} | OF_OTHERS == events().keys()


def test_lines_of_others_have_an_event() -> None:
    """The code gives them the names that the list has."""
    for name in OF_OTHERS:
        assert any(f'"{name}"' in text for text in texts().values()), name
