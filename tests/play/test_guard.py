"""Other sites are kept out: by the host's name, the origin, and the length of a request."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from spark_cep.play.page.guard import Guard, TooLargeError

OURS = "127.0.0.1:8765"


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Read the body, and answer."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    more = True
    while more:
        more = (await receive()).get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


def asked(
    headers: dict[str, str],
    *,
    method: str = "GET",
    kind: str = "http",
    bodies: tuple[bytes, ...] = (),
) -> dict[str, Any]:
    """The first message of the answer to a request."""
    sent: list[dict[str, Any]] = []
    parts = [
        {"type": "http.request", "body": body, "more_body": number < len(bodies) - 1}
        for number, body in enumerate(bodies or (b"",))
    ]

    async def receive() -> Any:
        return parts.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": kind,
        "method": method,
        "path": "/",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    asyncio.run(Guard(application, [OURS, "localhost:8765"], 100)(scope, receive, send))
    return sent[0]


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("headers", "is_let_in"),
    [
        ({"host": OURS}, True),
        ({"host": "LOCALHOST:8765"}, True),
        ({"host": OURS, "origin": f"http://{OURS}"}, True),
        ({}, False),
        ({"host": "127.0.0.1"}, False),
        ({"host": "127.0.0.1:9999"}, False),
        ({"host": "rebound.example:8765"}, False),
        ({"host": "rebound.example:8765", "origin": "http://rebound.example:8765"}, False),
        ({"host": OURS, "origin": "http://evil.example"}, False),
        ({"host": OURS, "origin": "null"}, False),
        ({"host": OURS, "origin": "http://127.0.0.1:9999"}, False),
        ({"host": OURS, "origin": f"https://{OURS}"}, False),
    ],
)
def test_names_and_origins(kind: str, headers: dict[str, str], is_let_in: bool) -> None:
    """A request is for a name of ours, and of a page from there."""
    first = asked(headers, kind=kind)
    refused = first.get("status") == 403 or first["type"] == "websocket.close"
    assert refused is not is_let_in


def test_another_site_cannot_write_without_an_origin() -> None:
    """A browser says where such a request comes from; tools without a browser may do it."""
    from_elsewhere = {"host": OURS, "sec-fetch-site": "cross-site"}
    assert asked(from_elsewhere, method="POST")["status"] == 403
    assert asked({"host": OURS, "sec-fetch-site": "same-origin"}, method="POST")["status"] == 200
    assert asked({"host": OURS}, method="POST")["status"] == 200


def test_long_requests() -> None:
    """What is longer than may be is not read to its end, however it is cut."""
    assert asked({"host": OURS}, method="POST", bodies=(b"x" * 60, b"x" * 40))["status"] == 200
    with pytest.raises(TooLargeError, match="more than 100 bytes"):
        asked({"host": OURS}, method="POST", bodies=(b"x" * 60, b"x" * 41, b""))
