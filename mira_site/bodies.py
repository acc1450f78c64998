"""How much of a request is read: Django takes in all of a body before anybody may refuse it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from mira_site.problems import send_problem

log = structlog.get_logger(__name__)

BODY_MAX_BYTES = 22_000_000  # a file of 20 MB, the longest thing there is, with what is around it
TOO_LARGE_TEXT = "This is more than can be taken in at once: a file may have at most 20 MB."
Scope = dict[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]


class _TooLarge(Exception):
    pass


def limited(django: Application) -> Application:
    """Refuses what is said to be too long at once, and the rest as soon as it is."""

    async def application(scope: Scope, receive: Any, send: Any) -> None:
        taken = 0

        async def counted() -> Mapping[str, Any]:
            nonlocal taken
            message: Mapping[str, Any] = await receive()
            taken += len(message.get("body", b""))
            if taken > BODY_MAX_BYTES:
                raise _TooLarge
            return message

        try:
            if _told_length(scope) > BODY_MAX_BYTES:
                raise _TooLarge
            await django(scope, counted, send)
        except _TooLarge:  # before Django has begun to answer: it reads all of the body first
            log.info("request.refused", status=413)
            await send_problem(send, 413, "too_large", TOO_LARGE_TEXT)

    return application


def _told_length(scope: Scope) -> int:
    told = dict(scope["headers"]).get(b"content-length", b"")
    return int(told) if told.isdigit() else 0
