"""Positions of the protocol, whose lines end otherwise than YAML's, and whose columns are units of
an encoding."""

from __future__ import annotations

import pytest
from lsprotocol import types as lsp

from spark_cep.language.answers import TextPosition, TextRange
from spark_cep.language.documents import Language, OpenDocument
from spark_cep.language_server.protocol import Conversion

TEXT = "a𝄞é: x\r\nb\u2028c: y\rd\n"
Place = tuple[int, tuple[tuple[int, int], ...], tuple[int, int]]
#: Offsets in the text, with the position in UTF-8, UTF-16, UTF-32, and ours.
PLACES: list[Place] = [
    (0, ((0, 0), (0, 0), (0, 0)), (0, 0)),
    (2, ((0, 5), (0, 3), (0, 2)), (0, 2)),
    (3, ((0, 7), (0, 4), (0, 3)), (0, 3)),
    (8, ((1, 0), (1, 0), (1, 0)), (1, 0)),
    (10, ((1, 4), (1, 2), (1, 2)), (2, 0)),
    (15, ((2, 0), (2, 0), (2, 0)), (3, 0)),
    (17, ((3, 0), (3, 0), (3, 0)), (4, 0)),
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("encoding", lsp.PositionEncodingKind)
def test_positions(place: Place, encoding: lsp.PositionEncodingKind) -> None:
    """Each way, and back."""
    offset, theirs, ours = place
    kinds = (
        lsp.PositionEncodingKind.Utf8,
        lsp.PositionEncodingKind.Utf16,
        lsp.PositionEncodingKind.Utf32,
    )
    document = OpenDocument("r.yaml", TEXT, Language.RULES)
    conversion = Conversion(document, "file:///r.yaml", encoding)
    position = lsp.Position(*theirs[kinds.index(encoding)])
    assert conversion.position_from(position) == TextPosition(*ours)
    assert conversion.position(TextPosition(*ours)) == position
    assert document.offset(TextPosition(*ours)) == offset
    assert document.position(offset) == TextPosition(*ours)


def test_beyond_the_text() -> None:
    """Positions behind a line's end are at its end."""
    document = OpenDocument("r.yaml", TEXT, Language.RULES)
    conversion = Conversion(document, "file:///r.yaml", lsp.PositionEncodingKind.Utf16)
    around = lsp.Range(lsp.Position(0, 99), lsp.Position(99, 99))
    assert conversion.range_from(around) == TextRange(TextPosition(0, 6), TextPosition(4, 0))
