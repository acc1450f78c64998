"""MCP over Streamable HTTP at /mcp: who is it, is it well addressed; the SDK does the rest.

Each request stands alone: no session is kept in this process, so any number of web processes serve
one client, and nothing is left open when one of them stops.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import structlog
from channels.db import database_sync_to_async
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.http.request import split_domain_port, validate_host
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.mcp import server_for
from mira_site.problems import send_problem

log = structlog.get_logger(__name__)

PATHS = frozenset({"/mcp", "/mcp/"})
BODY_MAX_BYTES = 1_048_576  # the longest memory, escaped as JSON, is 400 kB
SCHEMES = ("token", "bearer")
CHALLENGES = ('Bearer realm="MIRA"', 'Token realm="MIRA"')
CHALLENGE_AGAIN = 'Bearer realm="MIRA", error="invalid_token"'
SIGN_IN_TEXT = (
    "Send your API token as `Authorization: Bearer …` or `Authorization: Token …`. "
    "POST /api/v1/auth/token/ gives you one."
)
SIGN_IN_AGAIN_TEXT = (
    "This token is not valid, or no longer. POST /api/v1/auth/token/ gives you a new one."
)
Scope = dict[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]


class Refused(Exception):
    """The request goes no further; `status` and the text say why."""

    def __init__(
        self, status: int, code: str, detail: str, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.headers = status, code, headers


def beside(django: Application) -> Application:
    """MCP at its own address, Django at every other one."""

    async def application(scope: Scope, receive: Any, send: Any) -> None:
        await (endpoint if scope["path"] in PATHS else django)(scope, receive, send)

    return application


async def endpoint(scope: Scope, receive: Any, send: Any) -> None:
    """One request of an MCP client."""
    started, status = time.perf_counter(), 0

    async def watched(message: Mapping[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)
        await send(message)

    try:
        _check_address(scope)
        user = await _user(scope)
        if scope["method"] != "POST":
            # There is nothing a stream could bring, and no session to end.
            raise Refused(405, "method_not_allowed", "Use POST.", (("Allow", "POST"),))
        manager = StreamableHTTPSessionManager(
            server_for(user.pk),
            json_response=True,
            stateless=True,
            max_request_body_size=BODY_MAX_BYTES,
        )
        with structlog.contextvars.bound_contextvars(user=str(user.pk)):
            async with manager.run():
                await manager.handle_request(scope, receive, watched)
    except Refused as refusal:
        await send_problem(watched, refusal.status, refusal.code, str(refusal), refusal.headers)
    took_ms = round((time.perf_counter() - started) * 1000)
    log.info("mcp.answered", method=scope["method"], status=status, took_ms=took_ms)


def _check_address(scope: Scope) -> None:
    """As Django checks it: a page elsewhere that points its name here (DNS rebinding) gets nothing.

    Raises Refused.
    """
    request = ASGIRequest(scope, BytesIO())
    try:
        request.get_host()
    except DisallowedHost:
        raise Refused(400, "bad_host", "This server is not known by that name.") from None
    if settings.SECURE_SSL_REDIRECT and not request.is_secure():
        raise Refused(403, "insecure", "Use https: the token would be sent in the clear.")
    origin = request.headers.get("Origin", "")
    if origin and not _is_ours(origin):
        raise Refused(403, "foreign_origin", "Pages of other sites may not use this.")


def _is_ours(origin: str) -> bool:
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    try:
        host, _ = split_domain_port(urlsplit(origin).netloc.lower())
    except ValueError:  # an address with half a bracket
        return False
    return bool(host) and validate_host(host, settings.ALLOWED_HOSTS)


async def _user(scope: Scope) -> User:
    """Whose token it is. Raises Refused."""
    given = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
    scheme, _, token = given.partition(" ")
    if scheme.lower() not in SCHEMES or not token.strip():
        raise Refused(401, "not_signed_in", SIGN_IN_TEXT, _challenges(*CHALLENGES))
    by_token = database_sync_to_async(accounts.user_of_token, thread_sensitive=False)
    user: User | None = await by_token(token.strip())
    if user is None:
        raise Refused(401, "not_signed_in", SIGN_IN_AGAIN_TEXT, _challenges(CHALLENGE_AGAIN))
    return user


def _challenges(*values: str) -> tuple[tuple[str, str], ...]:
    return tuple(("WWW-Authenticate", value) for value in values)
