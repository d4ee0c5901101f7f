"""An answer at any position of any text that is being written."""

from __future__ import annotations

import random

import pytest

from spark_cep.language.actions import actions
from spark_cep.language.answers import TextPosition, TextRange
from spark_cep.language.completions import completions
from spark_cep.language.diagnostics import diagnostics
from spark_cep.language.documents import OpenDocument, language_of
from spark_cep.language.hover import hover
from spark_cep.language.symbols import symbols
from tests.language.opened import KNOWN
from tests.language.test_answers import EXAMPLES, ROOT

TEXTS = {file.name: file.read_text("utf-8") for file in EXAMPLES}
TEXTS["config.yaml"] = (ROOT / "examples" / "demo" / "config.yaml").read_text("utf-8")
#: Characters from one beginning, or position, to the next.
STRIDE = 11
#: Signs that end, open or hide what stands behind them.
SIGNS = "'\"`{}[]()|>&*!%@:,-#\t\n\r\\\u2028\u0085\ufeff\x00\ud800𝄞¦."


def document_of(name: str, text: str) -> OpenDocument:
    """The text in its file."""
    return OpenDocument(name, text, language_of(name, text), KNOWN.types, KNOWN.docs)


def ask(document: OpenDocument, position: TextPosition) -> None:
    """Ask what may stand at a position, and what does."""
    for each in completions(document, position):
        start, end = each.edit.range
        assert start <= end
        assert start.line == end.line == min(max(position.line, 0), len(document.lines) - 1)
        assert end.column <= len(document.lines[start.line])
    hover(document, position)


def ask_all(document: OpenDocument) -> None:
    """Ask about the whole text."""
    found = diagnostics(document)
    for each in found:
        start, end = each.range
        assert start <= end <= document.position(len(document.text))
    actions(document, TextRange(TextPosition(0, 0), TextPosition(10_000, 0)), found)
    symbols(document)


@pytest.mark.parametrize("name", TEXTS)
def test_some_positions(name: str) -> None:
    """Of some of the beginnings of a text, and beyond it."""
    chosen, text = random.Random(name), TEXTS[name]
    for length in (*chosen.sample(range(len(text)), 12), len(text)):
        document = document_of(name, text[:length])
        ask(document, document.position(length))
        ask(document, TextPosition(chosen.randrange(40), chosen.randrange(80)))
    ask_all(document_of(name, text[: chosen.randrange(len(text))]))
    ask(document_of(name, text), TextPosition(-1, -1))


@pytest.mark.parametrize("name", TEXTS)
def test_some_changes(name: str) -> None:
    """Signs put into a text anywhere."""
    chosen, text = random.Random(f"{name} changed"), TEXTS[name]
    for sign in SIGNS:
        at = chosen.randrange(len(text))
        document = document_of(name, text[:at] + sign + text[at:])
        ask(document, document.position(at + 1))
    for sign in chosen.sample(SIGNS, 3):
        at = chosen.randrange(len(text))
        ask_all(document_of(name, text[:at] + sign + text[at:]))


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_many_positions(name: str) -> None:
    """Of many beginnings of a text the end, and many positions of the whole; all of them (with
    ``STRIDE`` 1) take a minute of a core."""
    text = TEXTS[name]
    for length in range(0, len(text), STRIDE):
        document = document_of(name, text[:length])
        ask(document, document.position(length))
        if length % (5 * STRIDE) == 0:
            ask_all(document)
    whole = document_of(name, text)
    for offset in range(0, len(text), 2 * STRIDE):
        ask(whole, whole.position(offset))
