"""How much of a request is read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from asgiref.sync import async_to_sync

from mira_site import bodies

PIECE = b"x" * 1_000_000


class Reader:
    """Takes in all of a body, as Django does, then answers."""

    def __init__(self) -> None:
        self.taken = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        is_more = True
        while is_more:
            message = await receive()
            self.taken += len(message.get("body", b""))
            is_more = message.get("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


@pytest.fixture
def reader() -> Reader:
    return Reader()


def post(reader: Reader, megabytes: int, *, is_chunked: bool) -> httpx2.Response:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(megabytes):
            yield PIECE

    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=bodies.limited(reader))
        async with httpx2.AsyncClient(transport=transport, base_url="http://mira") as client:
            return await client.post("/", content=pieces() if is_chunked else PIECE * megabytes)

    return async_to_sync(ask)()


@pytest.mark.parametrize("is_chunked", [False, True])
def test_the_largest_file_goes_through(reader, is_chunked):
    assert post(reader, 21, is_chunked=is_chunked).text == "done"
    assert reader.taken == 21_000_000


def test_a_body_that_is_said_to_be_too_long_is_refused_unread(reader):
    answer = post(reader, 30, is_chunked=False)
    assert (answer.status_code, reader.taken) == (413, 0)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:mira:problem:too-large"


def test_one_of_unsaid_length_is_read_up_to_the_limit(reader):
    answer = post(reader, 30, is_chunked=True)
    assert answer.status_code == 413
    assert reader.taken <= bodies.BODY_MAX_BYTES
