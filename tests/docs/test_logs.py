"""The list of events that are logged is what the code logs, and docs/logs.md is made from it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from spark_cep.observability.log_events import (
    DRIVER_OUTPUT,
    EVENTS,
    LIBRARY_LOG,
    SPARK_LOG,
    SPARK_OUTPUT,
    render_reference,
)

ROOT = Path(__file__).parents[2]
LEVELS = {"debug": "debug", "info": "info", "warning": "warning", "error": "error"}
LEVELS |= {"exception": "error", "critical": "critical"}
#: Lines of others, which go through Python's logging.
OF_OTHERS = {each.name for each in (LIBRARY_LOG, SPARK_LOG, SPARK_OUTPUT, DRIVER_OUTPUT)}


def _logged() -> Iterator[tuple[str, str, frozenset[str], str]]:
    """Event, level, names of values and place of every call of a logger in the code."""
    for file in sorted((ROOT / "service").rglob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
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
    if isinstance(function, ast.IfExp):
        yield from _methods(function.body)
        yield from _methods(function.orelse)
    elif isinstance(function, ast.Attribute) and ast.unparse(function.value) == "_log":
        yield function.attr


def _names(argument: ast.expr, place: str) -> Iterator[str]:
    if isinstance(argument, ast.IfExp):
        yield from _names(argument.body, place)
        yield from _names(argument.orelse, place)
        return
    assert isinstance(argument, ast.Constant), f"{place}: the event's name is no constant"
    yield str(argument.value)


def test_page_is_up_to_date() -> None:
    """docs/logs.md is what the list gives."""
    assert (ROOT / "docs" / "logs.md").read_text("utf-8") == render_reference()


def test_every_event_is_in_the_list() -> None:
    """With its level, and with no values but those that the list has."""
    listed = {event.name: event for event in EVENTS}
    assert len(listed) == len(EVENTS)
    for name, level, values, place in _logged():
        assert name in listed, f"{place}: {name} is not in the list"
        assert level in listed[name].levels, f"{place}: {name} at {level}"
        unknown = values - {*listed[name].values, "batch", "rule"}
        assert not unknown, f"{place}: {name} with {unknown}"


def test_every_event_of_the_list_is_logged() -> None:
    """None is left of code that is gone."""
    assert {name for name, *_ in _logged()} == {e.name for e in EVENTS} - OF_OTHERS
