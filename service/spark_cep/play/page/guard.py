"""Keeps other sites out: a page that a browser has loaded from elsewhere must not reach this one.

A browser sends to 127.0.0.1 whatever a page of any site asks for, and a name that a site has led
to 127.0.0.1 (DNS rebinding) makes its answers readable to that site. So a request must be for a
name of ours, and come from a page of ours; and no body is longer than what may be opened.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")
_NOT_OURS: Final = 4403
_SAFE: Final = ("GET", "HEAD", "OPTIONS")


class TooLargeError(Exception):
    """A request's body is longer than it may be."""


class Guard:
    """An application that lets through what is for ``hosts``, names with ports, and from there.

    Args:
        app: The application.
        hosts: The names, as a browser writes them in ``Host``.
        most_bytes: The longest body of a request.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], most_bytes: int) -> None:
        self.app = app
        self._hosts = frozenset(each.lower() for each in hosts)
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or let the application do so."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        refused = self._refused(scope, Headers(scope=scope))
        if refused is None:
            await self.app(scope, self._limited(scope, receive), send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _NOT_OURS})
        else:
            await PlainTextResponse(refused, 403)(scope, receive, send)

    def _refused(self, scope: Scope, headers: Headers) -> str | None:
        """The reason for which a request is not answered."""
        host = headers.get("host", "").lower()
        if host not in self._hosts:
            return f"this page is at {', '.join(sorted(self._hosts))} alone"
        origin = headers.get("origin")
        is_read = scope["type"] == "http" and scope["method"] in _SAFE
        if origin is None:
            from_elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
            return (
                "requests of other sites are not answered"
                if from_elsewhere and not is_read
                else None
            )
        if origin.lower() != f"http://{host}":
            return "requests of other sites are not answered"
        return None

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Return a function that receives a request's body, and no more of it than may be."""
        if scope["type"] != "http":
            return receive
        size = 0

        async def limited() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > self._most_bytes:
                raise TooLargeError(f"a request has more than {self._most_bytes:,} bytes")
            return message

        return limited
