"""Text that is not YAML: the place of the mistake, and the way out."""

from __future__ import annotations

import pytest

from spark_cep.documents.reading import UNREADABLE, read_documents
from spark_cep.errors import Problem


def refused(text: str) -> Problem:
    """The one problem of a text that cannot be read."""
    (document,) = read_documents(text, "rule.yaml")
    assert document.data is UNREADABLE
    (problem,) = document.problems.values()
    return problem


@pytest.mark.parametrize(
    ("text", "place", "message", "allowed"),
    [
        (
            "id: r\nwhere: 'kind = 1\nkey: k\n",
            (2, 8),
            "the quote that opens here is not closed",
            "the same quote",
        ),
        (
            'id: r\nwhere: "kind = 1\nkey: k\n',
            (2, 8),
            "the quote that opens here is not closed",
            "the same quote",
        ),
        (
            "id: r\nwhere: kind = 'a: b'\n",
            (2, 17),
            "text with `: ` in it needs quotes",
            'quotes around the whole value: `where: "…"`',
        ),
        (
            "- step: a\n  where: x = 1\n   until: y = 2\n",
            (3, 9),
            "a key cannot stand here: the value above has begun already",
            "the same indentation",
        ),
        (
            "pattern:\n  - step: a\n   where: x = 1\n",
            (3, 4),
            "this key is indented less than those of the item above",
            "4 blanks before it, or `- ` where it begins another item",
        ),
        (
            "pattern:\n  - step: a\n    all:\n      -  step: b\n  where: x = 1\n",
            (5, 3),
            "this key is indented less than those of the item above",
            "4 blanks before it, or `- `",
        ),
        ("id: r\n\tkey: k\n", (2, 1), "a tab indents this line", "spaces"),
        ("where: @x = 1\n", (1, 8), "a value cannot begin with '@'", "quotes around the whole"),
        ("where: 'a' = kind\n", (1, 12), "text follows a value that is complete", "quotes around"),
        (
            "where: *x = 1\n",
            (1, 8),
            "`*` begins an alias, and nothing has an anchor of that name",
            "quotes around the whole value",
        ),
        ("id: r\npattern\nkey: k\n", (2, 1), "`:` is missing after this key", "`key: value`"),
        (
            "pattern: [{step: a, where: x IN ('a', 'b')}]\n",
            (1, 37),
            "text with `,` in it needs quotes inside `{…}` and `[…]`",
            'quotes around the whole value: `where: "…"`',
        ),
        (
            "{id: r",
            (1, 7),
            "while parsing a flow mapping, expected ',' or '}', but got '<stream end>'",
            "a YAML or JSON document",
        ),
    ],
)
def test_traps_of_yaml_are_explained(
    text: str, place: tuple[int, int], message: str, allowed: str
) -> None:
    """Where the mistake is, not where YAML noticed it."""
    problem = refused(text)
    assert problem.message == message
    assert (problem.allowed or "").startswith(allowed)
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == place
    assert problem.excerpt == text.split("\n")[place[0] - 1]
