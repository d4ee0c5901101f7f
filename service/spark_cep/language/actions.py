"""Changes that settle a problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spark_cep.language.answers import CodeAction, Diagnostic, Edit, TextPosition, TextRange
from spark_cep.language.documents import Language, OpenDocument
from spark_cep.language.places.place import document_around
from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.document.allowed import WITHOUT_REASON
from spark_cep.pattern.document.sql_file import divided

_OF_COMMENTS = frozenset({Code.UNUSED_ALLOW, Code.ALLOW_WITHOUT_REASON, Code.UNKNOWN_CODE})


def actions(
    document: OpenDocument, around: TextRange, found: Sequence[Diagnostic]
) -> list[CodeAction]:
    """The changes that settle those of ``found`` (of
    :func:`spark_cep.language.diagnostics.diagnostics`) that touch a range."""
    touching = (each for each in found if each.range.overlaps(around))
    return [action for each in touching for action in _settling(document, each)]


def _settling(document: OpenDocument, found: Diagnostic) -> Iterator[CodeAction]:
    if found.fix is not None:
        title = f"Write {found.fix.text}" if found.fix.text else "Remove the comment"
        yield CodeAction(title, (found.fix,), found, preferred=True)
    # JSON has no comments.
    has_comments = document.text.lstrip()[:1] != "{"
    rules = document.language in (Language.RULES, Language.SQL) and has_comments
    if rules and found.code is not None and found.code not in _OF_COMMENTS:
        sign = "--" if document.language is Language.SQL else "#"
        begin = TextPosition(_line_of_comment(document, found), 0)
        comment = f"{sign} spark-cep: allow {found.code} because {WITHOUT_REASON}\n"
        edit = Edit(TextRange(begin, begin), comment)
        yield CodeAction(f"Allow {found.code} for this rule, with a reason", (edit,), found)


def _line_of_comment(document: OpenDocument, found: Diagnostic) -> int:
    """The line before which a comment of a rule stands: that of its first key, or of its
    statement."""
    if document.language is Language.SQL:
        return divided(document.text)[1]
    offset = document.offset(found.range.start)
    around = document_around(document.text, offset)
    begin = document.position(document.text.index(around)).line
    lines = around.splitlines()
    below = (n for n, line in enumerate(lines) if line.strip() and not _is_aside(line))
    return begin + next(below, 0)


def _is_aside(line: str) -> bool:
    return line.startswith(("---", "%")) or line.lstrip().startswith("#")
