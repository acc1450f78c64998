"""Who opens a WebSocket: a page with its session cookie, or a program with its token."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.db import database_sync_to_async
from channels.security.websocket import AllowedHostsOriginValidator
from django.contrib.auth.models import AnonymousUser

from mira_site.accounts import selectors as accounts

Application = Callable[..., Awaitable[Any]]

PREFIX = "token."


class SocketAuthentication:
    """Puts `user` into the scope, and the `token` of a program.

    `Sec-WebSocket-Protocol: token.<token>` signs a program in. Without one the session cookie does,
    and then the Origin must be ours: a browser sends the cookie from foreign pages too.
    """

    def __init__(self, inner: Application) -> None:
        self.inner = inner
        self.by_session = AllowedHostsOriginValidator(AuthMiddlewareStack(inner))

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        protocol = next((p for p in scope.get("subprotocols", []) if p.startswith(PREFIX)), None)
        if protocol is None:
            return await self.by_session(scope, receive, send)
        token = protocol.removeprefix(PREFIX)
        user = await database_sync_to_async(_user_of, thread_sensitive=False)(token)
        known = {"user": user, "token_protocol": protocol, "token": token}
        return await self.inner({**scope, **known}, receive, send)


def _user_of(token: str) -> Any:
    return accounts.user_of_token(token) or AnonymousUser()
