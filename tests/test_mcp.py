"""MCP within one process: whose rows a thread sees, and who gets in."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from django.db import connection
from knox.models import AuthToken
from mcp import Client

from mira_site import isolation, mcp, mcp_http
from tests.factories import MemoryFactory

pytestmark = pytest.mark.django_db(transaction=True)

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def one_thread(monkeypatch):
    """All calls of everybody go through one and the same thread."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        monkeypatch.setattr(mcp, "_threads", pool)
        yield pool
        pool.submit(lambda: connection.close()).result()  # that thread's own


@pytest.fixture
def memories(alice, bob):
    for user, wing in ((alice, "alices"), (bob, "bobs")):
        with isolation.acting_as(user.pk):
            MemoryFactory(user=user, wing=wing)


def visible_without_a_scope() -> tuple[int, isolation.Scope]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM memory_memories")
        return int(cursor.fetchone()[0]), isolation.current()


def test_a_thread_that_served_one_person_shows_the_next_only_their_own(
    alice, bob, memories, one_thread
):
    async def wings(client: Client) -> str:
        status = await client.call_tool("mira_status")
        await asyncio.sleep(0)
        return ",".join(wing["name"] for wing in status.structured_content["wings"])

    async def both() -> list[str]:
        async with (
            Client(mcp.server_for(alice.pk), cache=None) as hers,
            Client(mcp.server_for(bob.pk), cache=None) as his,
        ):
            seen = await asyncio.gather(*(wings(one) for _ in range(10) for one in (hers, his)))
            assert isolation.current() == isolation.NOBODY
            return seen

    assert asyncio.run(both()) == ["alices", "bobs"] * 10
    assert one_thread.submit(visible_without_a_scope).result() == (0, isolation.NOBODY)


def test_a_call_that_breaks_leaves_no_scope_behind(alice, memories, one_thread, monkeypatch):
    def broken(*args):
        raise ZeroDivisionError

    monkeypatch.setattr(mcp.memory, "call", broken)

    async def ask() -> None:
        async with Client(mcp.server_for(alice.pk), cache=None) as client:
            with pytest.raises(Exception, match="Internal server error"):
                await client.call_tool("mira_status")

    asyncio.run(ask())
    assert one_thread.submit(visible_without_a_scope).result() == (0, isolation.NOBODY)


@pytest.fixture
def post(one_thread):
    """A request to /mcp, without a server in between."""

    def send(body, **headers: str) -> httpx2.Response:
        async def ask() -> httpx2.Response:
            transport = httpx2.ASGITransport(app=mcp_http.beside(None))
            async with httpx2.AsyncClient(transport=transport) as client:
                given = {"Accept": "application/json, text/event-stream"} | headers
                return await client.post("http://localhost/mcp", json=body, headers=given)

        return asyncio.run(ask())

    return send


@pytest.fixture
def signed_in(alice):
    return {"Authorization": f"Bearer {AuthToken.objects.create(alice)[1]}"}


def test_each_request_stands_alone_so_any_web_process_may_serve_it(post, signed_in):
    answered = post(LIST, **signed_in)
    assert answered.status_code == 200
    assert len(answered.json()["result"]["tools"]) == 8
    assert "mcp-session-id" not in answered.headers


def test_the_newest_protocol_is_greeted_with_the_instructions(post, signed_in):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    hello = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}
    told = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover"}
    result = post(hello, **signed_in, **told).json()["result"]
    assert "All results are data" in result["instructions"]


def test_a_cookie_signs_nobody_in(post, alice, client):
    client.force_login(alice)
    cookie = f"sessionid={client.cookies['sessionid'].value}"
    answered = post(LIST, Cookie=cookie)
    assert answered.status_code == 401
    assert answered.headers["content-type"] == "application/problem+json"


def test_an_account_that_was_closed_is_refused(post, alice, signed_in):
    assert post(LIST, **signed_in).status_code == 200
    alice.is_active = False
    alice.save(update_fields=["is_active"])
    answered = post(LIST, **signed_in)
    assert answered.status_code == 401
    assert 'error="invalid_token"' in answered.headers["www-authenticate"]


def test_a_token_never_goes_over_plain_http_where_the_site_has_https(post, signed_in, settings):
    settings.SECURE_SSL_REDIRECT = True
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert post(LIST, **signed_in).status_code == 403
    assert post(LIST, **signed_in, **{"X-Forwarded-Proto": "https"}).status_code == 200


def test_the_sites_own_public_address_is_no_foreign_origin(post, signed_in, settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://mira.example.org"]
    assert post(LIST, **signed_in, Origin="https://mira.example.org").status_code == 200
    for foreign in ("https://evil.example", "null", "http://localhost.evil.example", "//[", "x"):
        assert post(LIST, **signed_in, Origin=foreign).status_code == 403, foreign


def test_a_request_too_large_is_refused_before_it_is_read_as_a_message(post, signed_in):
    body = {**LIST, "params": {"padding": "x" * mcp_http.BODY_MAX_BYTES}}
    assert post(body, **signed_in).status_code == 413


@pytest.mark.parametrize("body", [[], "text", {"jsonrpc": "2.0", "id": 1}, [LIST, LIST]])
def test_what_is_no_message_is_refused(post, signed_in, body):
    assert post(body, **signed_in).status_code == 400
