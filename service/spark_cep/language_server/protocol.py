"""Answers as values of the protocol, and its positions as ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from lsprotocol import types as lsp

from spark_cep.language.answers import (
    CodeAction,
    Completion,
    Diagnostic,
    Edit,
    Hover,
    NameKind,
    Severity,
    Symbol,
    TextPosition,
    TextRange,
)
from spark_cep.language.documents import OpenDocument
from spark_cep.pattern.check_codes import Code

NAME: Final = "spark-cep"
#: The protocol has other line ends than YAML.
_LINE: Final = re.compile("\r\n|[\n\r]")
_BEYOND_UTF_16: Final = 0xFFFF

_COMPLETIONS: Final = {
    NameKind.KEY: lsp.CompletionItemKind.Property,
    NameKind.VALUE: lsp.CompletionItemKind.EnumMember,
    NameKind.COLUMN: lsp.CompletionItemKind.Field,
    NameKind.STEP: lsp.CompletionItemKind.Variable,
    NameKind.FUNCTION: lsp.CompletionItemKind.Function,
    NameKind.KEYWORD: lsp.CompletionItemKind.Keyword,
    NameKind.UNIT: lsp.CompletionItemKind.Unit,
    NameKind.RULE: lsp.CompletionItemKind.Class,
    NameKind.GROUP: lsp.CompletionItemKind.Variable,
    NameKind.MEASURE: lsp.CompletionItemKind.Value,
    NameKind.CASE: lsp.CompletionItemKind.Event,
    NameKind.SECTION: lsp.CompletionItemKind.Module,
}
_SYMBOLS: Final = {
    NameKind.RULE: lsp.SymbolKind.Class,
    NameKind.GROUP: lsp.SymbolKind.Namespace,
    NameKind.MEASURE: lsp.SymbolKind.Property,
    NameKind.CASE: lsp.SymbolKind.Event,
    NameKind.SECTION: lsp.SymbolKind.Module,
}
_SEVERITIES: Final = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
}


class Conversion:
    """The answers about one text. ``encoding``: the unit in which its client counts characters,
    UTF-16 unless it says; ``uri``: what it calls the text."""

    def __init__(self, document: OpenDocument, uri: str, encoding: str | None) -> None:
        self._document = document
        self._uri = uri
        self._encoding = encoding

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(end.end() for end in _LINE.finditer(self._document.text))]

    def position_from(self, position: lsp.Position) -> TextPosition:
        """Our position of one of the protocol's."""
        line = min(position.line, len(self._starts) - 1)
        text, offset = self._document.text, self._starts[line]
        units = position.character
        while units > 0 and offset < len(text) and text[offset] not in "\r\n":
            units -= self._units(text[offset])
            offset += 1
        return self._document.position(offset)

    def range_from(self, around: lsp.Range) -> TextRange:
        """Our range of one of the protocol's."""
        return TextRange(self.position_from(around.start), self.position_from(around.end))

    def position(self, position: TextPosition) -> lsp.Position:
        """A position of ours as one of the protocol's."""
        offset = self._document.offset(position)
        line = next(n for n in range(len(self._starts), 0, -1) if self._starts[n - 1] <= offset) - 1
        before = self._document.text[self._starts[line] : offset]
        return lsp.Position(line, sum(map(self._units, before)))

    def range(self, around: TextRange) -> lsp.Range:
        """A range of ours as one of the protocol's."""
        return lsp.Range(self.position(around.start), self.position(around.end))

    def _units(self, character: str) -> int:
        match self._encoding:
            case lsp.PositionEncodingKind.Utf32:
                return 1
            case lsp.PositionEncodingKind.Utf8:
                return len(character.encode(errors="surrogatepass"))
        return 2 if ord(character) > _BEYOND_UTF_16 else 1

    def diagnostic(self, found: Diagnostic) -> lsp.Diagnostic:
        """A diagnostic."""
        unused = found.code == Code.UNUSED_ALLOW
        related = [
            lsp.DiagnosticRelatedInformation(
                lsp.Location(self._uri, self.range(each.range)), each.message
            )
            for each in found.related
        ]
        return lsp.Diagnostic(
            self.range(found.range),
            found.message if found.help is None else f"{found.message}\nhelp: {found.help}",
            _SEVERITIES[found.severity],
            found.code,
            source=NAME,
            tags=[lsp.DiagnosticTag.Unnecessary] if unused else None,
            related_information=related or None,
        )

    def completion(self, number: int, given: Completion) -> lsp.CompletionItem:
        """A completion, the ``number``-th of all."""
        return lsp.CompletionItem(
            label=given.label,
            kind=_COMPLETIONS[given.kind],
            detail=given.detail or None,
            documentation=_markdown(given.documentation) if given.documentation else None,
            sort_text=f"{number:05}",
            text_edit=self._edit(given.edit),
        )

    def hover(self, given: Hover) -> lsp.Hover:
        """An explanation as the protocol has it."""
        return lsp.Hover(_markdown(given.text), self.range(given.range))

    def action(self, given: CodeAction) -> lsp.CodeAction:
        """A change that settles a diagnostic."""
        return lsp.CodeAction(
            given.title,
            lsp.CodeActionKind.QuickFix,
            [self.diagnostic(given.diagnostic)],
            is_preferred=given.preferred,
            edit=lsp.WorkspaceEdit({self._uri: [self._edit(each) for each in given.edits]}),
        )

    def symbols(self, given: Sequence[Symbol]) -> list[lsp.DocumentSymbol]:
        """Symbols with those in them."""
        return [
            lsp.DocumentSymbol(
                each.name,
                _SYMBOLS.get(each.kind, lsp.SymbolKind.Variable),
                self.range(each.range),
                self.range(each.name_range),
                each.detail or None,
                children=self.symbols(each.children),
            )
            for each in given
        ]

    def _edit(self, edit: Edit) -> lsp.TextEdit:
        return lsp.TextEdit(self.range(edit.range), edit.text)


def _markdown(text: str) -> lsp.MarkupContent:
    return lsp.MarkupContent(lsp.MarkupKind.Markdown, text)
