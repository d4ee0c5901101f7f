"""The server in a process of its own, asked as an editor does."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from tests.language.opened import SCHEMA

RULE = "# 𝄞\nid: r\nkey: user_id\npattern:\n  - {step: a, where: kind = NULL}\n"
CASES = "cases:\n  - {case: c, events: [], expect: {matches: [{steps: {b: []}}]}}\n"


class Editor(LanguageClient):
    """An editor with the texts that it has open."""

    def __init__(self) -> None:
        super().__init__("editor", "1")
        self.published: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

    def opens(self, file: Path, text: str) -> lsp.TextDocumentIdentifier:
        """Open a text."""
        item = lsp.TextDocumentItem(file.as_uri(), "yaml", 1, text)
        self.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return lsp.TextDocumentIdentifier(item.uri)

    def changes(self, uri: str, version: int, text: str) -> None:
        """Type."""
        changed = lsp.VersionedTextDocumentIdentifier(version, uri)
        whole = lsp.TextDocumentContentChangeWholeDocument(text)
        self.text_document_did_change(lsp.DidChangeTextDocumentParams(changed, [whole]))

    async def told(self) -> lsp.PublishDiagnosticsParams:
        """The next diagnostics."""
        return await asyncio.wait_for(self.published.get(), 30)


async def session(folder: Path) -> int | None:
    """A session; the exit code of the server."""
    editor = Editor()

    def noticed(params: lsp.PublishDiagnosticsParams) -> None:
        editor.published.put_nowait(params)

    editor.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(noticed)
    await editor.start_io(sys.executable, "-m", "spark_cep.cli.main", "lsp", "--stdio")
    begun = await editor.initialize_async(
        lsp.InitializeParams(
            lsp.ClientCapabilities(), root_uri=folder.as_uri(),
            initialization_options={"schemas": ["schemas"]},
        )
    )  # fmt: skip
    assert begun.server_info is not None
    assert begun.server_info.name == "spark-cep"
    editor.initialized(lsp.InitializedParams())

    # What `check` says, at its place in UTF-16; and what settles it.
    text = editor.opens(folder / "r.yaml", RULE)
    told = await editor.told()
    assert (told.uri, told.version) == (text.uri, 1)
    (found,) = told.diagnostics
    assert found.range == lsp.Range(lsp.Position(4, 21), lsp.Position(4, 32))
    assert (found.code, found.severity) == ("compared-with-null", lsp.DiagnosticSeverity.Warning)
    assert found.message.endswith("\nhelp: `kind IS NULL`")
    given = await editor.text_document_code_action_async(
        lsp.CodeActionParams(text, found.range, lsp.CodeActionContext([found]))
    )
    titles = [each.title for each in given or ()]
    assert titles == [
        "Write kind IS NULL", "Allow compared-with-null for this rule, with a reason"
    ]  # fmt: skip

    # Columns of the schema, and their meaning.
    place = lsp.Position(4, 22)
    offered = await editor.text_document_completion_async(lsp.CompletionParams(text, place))
    assert isinstance(offered, lsp.CompletionList)
    assert "amount" in [each.label for each in offered.items]
    about = await editor.text_document_hover_async(lsp.HoverParams(text, lsp.Position(2, 7)))
    assert about is not None
    assert isinstance(about.contents, lsp.MarkupContent)
    assert "The account that pays." in about.contents.value
    outline = await editor.text_document_document_symbol_async(lsp.DocumentSymbolParams(text))
    assert [each.name for each in outline or ()] == ["r"]

    # Several changes are looked at once.
    editor.changes(text.uri, 2, RULE.replace("NULL", "'C"))
    editor.changes(text.uri, 3, RULE.replace("NULL", "'CARD'"))
    told = await editor.told()
    if told.version == 2:  # where the server waited for a processor between them
        told = await editor.told()
    assert (told.version, list(told.diagnostics)) == (3, [])

    # Cases, with the rules of the file beside them.
    (folder / "r.yaml").write_text(RULE.replace("= NULL", "IS NULL"), "utf-8")
    editor.opens(folder / "r.cases.yaml", CASES)
    (found,) = (await editor.told()).diagnostics
    assert "`b`" in found.message

    await editor.shutdown_async(None)
    editor.exit(None)
    await editor.stop()
    process = editor._server
    return None if process is None else process.returncode


@pytest.mark.slow
def test_session(tmp_path: Path) -> None:
    """Diagnostics, actions, completion, explanations, symbols; then it ends."""
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "payment.avsc").write_text(json.dumps(SCHEMA), "utf-8")
    assert asyncio.run(session(tmp_path)) == 0
