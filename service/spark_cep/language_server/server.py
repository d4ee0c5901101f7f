"""The language server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from spark_cep import __version__
from spark_cep.errors import SparkCepError
from spark_cep.language.actions import actions
from spark_cep.language.answers import Diagnostic
from spark_cep.language.completions import completions
from spark_cep.language.diagnostics import diagnostics
from spark_cep.language.documents import OpenDocument
from spark_cep.language.hover import hover
from spark_cep.language.known.event_types import KnownTypes
from spark_cep.language.symbols import symbols
from spark_cep.language_server.protocol import NAME, Conversion
from spark_cep.language_server.surroundings import Surroundings

#: From the last change of a text to its diagnostics.
_SECONDS: Final = 0.2

ReadConfig = Callable[[Path], tuple[KnownTypes, tuple[str, ...]]]
"""Reads the types that a job's configuration names, and the names of its inputs; raises
SparkCepError where it cannot."""


class RuleServer(LanguageServer):
    """A server for rules, test cases and configurations. ``read_config`` reads the types that
    ``config`` names, if that is given."""

    def __init__(
        self, read_config: ReadConfig, schemas: Sequence[Path], config: Path | None
    ) -> None:
        # Texts come whole: pygls counts lines otherwise than the protocol where it puts changes in.
        super().__init__(NAME, __version__, lsp.TextDocumentSyncKind.Full)
        self._read_config = read_config
        self._config = config
        self._surroundings = Surroundings(schemas)
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._found: dict[str, tuple[OpenDocument, list[Diagnostic]]] = {}

    def begin(self, options: Any) -> None:
        """Take the options of the client: ``schemas``, ``config``, as the command has them."""
        given = options if isinstance(options, dict) else {}
        root = Path(self.workspace.root_path or ".")
        schemas = given.get("schemas")
        if isinstance(schemas, list):
            self._surroundings.schemas = tuple(root / str(each) for each in schemas)
        if isinstance(given.get("config"), str):
            self._config = root / given["config"]

    async def learn_types(self) -> None:
        """Read the types that the configuration names, and look at all texts again."""
        if self._config is None:
            return
        try:
            read = await asyncio.to_thread(self._read_config, self._config)
            self._surroundings.of_config = read
        except SparkCepError as error:
            message = f"{NAME}: the schemas of {self._config} cannot be read: {error}"
            self.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, message))
        for uri in self.workspace.text_documents:
            self.look_soon(uri)

    def is_config(self, uri: str) -> bool:
        """Return whether a text is the configuration that types are read by."""
        return self._config is not None and _path(uri) == self._config.absolute()

    def document(self, uri: str) -> OpenDocument:
        """A text as it is now."""
        text = self.workspace.get_text_document(uri).source
        return self._surroundings.document(_path(uri), text)

    def conversion(self, document: OpenDocument, uri: str) -> Conversion:
        """The conversion of answers about a text."""
        return Conversion(document, uri, self.workspace.position_encoding)

    def look_soon(self, uri: str) -> None:
        """Publish the diagnostics of a text once it has not changed for a moment."""
        self.forget(uri)
        self._waiting[uri] = asyncio.get_running_loop().create_task(self._look(uri))

    def forget(self, uri: str) -> None:
        """Publish no diagnostics of a text any more."""
        waiting = self._waiting.pop(uri, None)
        if waiting is not None:
            waiting.cancel()

    async def _look(self, uri: str) -> None:
        await asyncio.sleep(_SECONDS)
        version = self.workspace.get_text_document(uri).version
        document, found = await asyncio.to_thread(self._examined, uri)
        self._found[uri] = document, found
        conversion = self.conversion(document, uri)
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri, [*map(conversion.diagnostic, found)], version)
        )

    def _examined(self, uri: str) -> tuple[OpenDocument, list[Diagnostic]]:
        document = self.document(uri)
        return document, diagnostics(document)

    def found(self, uri: str, document: OpenDocument) -> list[Diagnostic]:
        """The diagnostics of a text, if they are known already."""
        before = self._found.get(uri)
        return before[1] if before is not None and before[0].text == document.text else []


def rule_server(
    read_config: ReadConfig, schemas: Sequence[Path] = (), config: Path | None = None
) -> RuleServer:
    """A server with all its features."""
    server = RuleServer(read_config, schemas, config)

    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        server.begin(params.initialization_options)

    @server.feature(lsp.INITIALIZED)
    async def initialized(_: lsp.InitializedParams) -> None:
        await server.learn_types()

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.look_soon(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.look_soon(params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        if server.is_config(params.text_document.uri):
            await server.learn_types()

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)
        server.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(params.text_document.uri, [])
        )

    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION,
        lsp.CompletionOptions(trigger_characters=[".", "'", "("]),
    )
    def complete(params: lsp.CompletionParams) -> lsp.CompletionList:
        uri = params.text_document.uri
        document = server.document(uri)
        conversion = server.conversion(document, uri)
        given = completions(document, conversion.position_from(params.position))
        items = [conversion.completion(number, each) for number, each in enumerate(given)]
        return lsp.CompletionList(is_incomplete=False, items=items)

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def explain(params: lsp.HoverParams) -> lsp.Hover | None:
        uri = params.text_document.uri
        document = server.document(uri)
        conversion = server.conversion(document, uri)
        position = conversion.position_from(params.position)
        given = hover(document, position, server.found(uri, document))
        return None if given is None else conversion.hover(given)

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(code_action_kinds=[lsp.CodeActionKind.QuickFix]),
    )
    def settle(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        uri = params.text_document.uri
        document = server.document(uri)
        conversion = server.conversion(document, uri)
        found = server.found(uri, document) or diagnostics(document)
        around = conversion.range_from(params.range)
        return [conversion.action(each) for each in actions(document, around, found)]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def outline(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
        uri = params.text_document.uri
        document = server.document(uri)
        return server.conversion(document, uri).symbols(symbols(document))

    return server


def _path(uri: str) -> Path:
    """The file of a text; of one that is in no file, its name."""
    return Path(to_fs_path(uri) or uri)
