"""The chat's WebSocket: frames in, events out, nothing else (contract 8)."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import UUID

import redis
import structlog
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.contrib.auth import HASH_SESSION_KEY
from django.utils.crypto import constant_time_compare
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from conversations import events, selectors, services, stream
from conversations.constants import (
    FIRST_FRAME_S,
    READ_S,
    RESUME_MARGIN_S,
    SIGN_IN_LOOK_S,
    STREAM_TTL_S,
)
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import MiraError
from mira_site.isolation import acting_as

log = structlog.get_logger(__name__)

SIGNED_OUT, UNAVAILABLE, COME_AGAIN = 4401, 1013, 1012
RESYNC_TEXT = "You were away for a while. Reload to see everything that was said."


async def _wait(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except TimeoutError:
        return False
    return True


class SendFrame(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    client_id: UUID
    attachments: list[UUID] = Field(default_factory=list)
    off_record: bool = False


class ResumeFrame(BaseModel):
    model_config = ConfigDict(extra="forbid")

    after: str = Field(pattern=r"^\d{1,20}(-\d{1,20})?$")


class ChatConsumer(AsyncJsonWebsocketConsumer):
    """One open page. Events come from the stream, so each arrives once and in order."""

    channel_layer_alias = ""  # none: the stream is read, and nobody sends to a socket
    reader: stream.AsyncReader | None = None
    pump: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        user = self.scope["user"]
        if not user.is_authenticated:
            # Accepted first: a refused handshake hides the reason from the page.
            await self.accept()
            await self.close(SIGNED_OUT)
            return
        self.user_id = user.pk
        self.session_hash = self.scope.get("session", {}).get(HASH_SESSION_KEY)
        self.reader = stream.AsyncReader(user.pk)
        self.spoken_to = asyncio.Event()
        try:
            self.seen = await self.reader.last_id()
        except (redis.RedisError, OSError):
            await self.accept(self.scope.get("token_protocol"))
            await self.close(UNAVAILABLE)
            return
        await self.accept(self.scope.get("token_protocol"))
        self.pump = asyncio.create_task(self._pump())

    async def disconnect(self, code: int) -> None:
        if self.pump is not None:
            self.pump.cancel()
        if self.reader is not None:
            await self.reader.close()

    async def _pump(self) -> None:
        """Send what comes after `seen`, as it comes; started anew where `seen` is put back.

        Nothing is sent before the page had the time to say where it left off: an event of now
        would overtake those it has missed.
        """
        assert self.reader is not None  # noqa: S101 (set before the task starts)
        try:
            await _wait(self.spoken_to, FIRST_FRAME_S)
            looked_at = time.monotonic()
            while True:
                for event in await self.reader.after(self.seen, block_ms=round(READ_S * 1000)):
                    self.seen = event.id
                    if not await self._told({"id": event.id, **event.payload}):
                        return
                if time.monotonic() - looked_at >= SIGN_IN_LOOK_S:  # however much there was to tell
                    looked_at = time.monotonic()
                    if ended := await database_sync_to_async(self._ended, thread_sensitive=False)():
                        await self.close(ended)
                        return
        except (redis.RedisError, OSError) as error:
            log.warning("socket.lost_redis", reason=type(error).__name__)
            await self.close(UNAVAILABLE)

    async def _told(self, event: dict[str, Any]) -> bool:
        """False if the line broke under it: it comes back on a socket of its own."""
        try:
            await self.send_json(event)
        except OSError:
            return False
        return True

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any
    ) -> None:
        """A binary frame is as unknown as any other that is not ours."""
        if self.reader is None:
            return
        await super().receive(text_data if text_data is not None else "null", **kwargs)
        self.spoken_to.set()

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        kind = content.get("type") if isinstance(content, dict) else None
        frame = {k: v for k, v in content.items() if k != "type"} if kind else {}
        try:
            if kind == "send":
                await self._send(SendFrame(**frame))
            elif kind == "stop":
                await database_sync_to_async(self._stop, thread_sensitive=False)()
            elif kind == "resume":
                await self._resume(ResumeFrame(**frame).after)
            else:
                await self._notice("This frame is not known; see the API documentation.")
        except ValidationError as error:
            field = ".".join(str(part) for part in error.errors()[0]["loc"])
            await self._notice(f"The frame's field {field} is missing or malformed.", frame)
        except MiraError as error:
            await self._notice(str(error), frame)

    @classmethod
    async def decode_json(cls, text_data: str) -> Any:
        try:
            return await super().decode_json(text_data)
        except (ValueError, RecursionError):
            return None

    async def _send(self, frame: SendFrame) -> None:
        ended = await database_sync_to_async(self._accept, thread_sensitive=False)(frame)
        if ended:
            await self.close(ended)

    def _ended(self) -> int:
        """Why this socket must close, as its code; 0 while the sign-in that opened it is good.

        After the end of its session a page dials again: with the session that was kept, or made
        anew, it is let in, with none it hears that it is signed out.
        """
        return self._signed_in()[1]

    def _signed_in(self) -> tuple[User | None, int]:
        """Who it is as of now, or why the socket must close."""
        token = self.scope.get("token")
        if token is not None:
            owner = accounts.user_of_token(token)
            return owner, 0 if owner is not None else SIGNED_OUT
        user = accounts.user(self.user_id)
        if not user.is_active:
            return None, SIGNED_OUT
        session = self.scope["session"]
        if not session.exists(session.session_key):
            return None, COME_AGAIN
        is_same = constant_time_compare(self.session_hash, user.get_session_auth_hash())
        return (user, 0) if is_same else (None, COME_AGAIN)

    def _accept(self, frame: SendFrame) -> int:
        """0, or the code with which the socket closes instead of taking the message."""
        with acting_as(self.user_id):
            user, ended = self._signed_in()
            if user is None:
                return ended
            services.accept_message(
                user=user,
                text=frame.text,
                client_id=frame.client_id,
                file_ids=frame.attachments,
                off_record=frame.off_record,
            )
        return 0

    def _stop(self) -> None:
        with acting_as(self.user_id):
            user = accounts.user(self.user_id)
            turn = selectors.open_turn(user)
            if turn is not None:
                services.stop_turn(user=user, turn_id=turn.pk)

    async def _resume(self, after: str) -> None:
        """Replay what came after `after`; a gap that the stream no longer holds is said."""
        milliseconds, _ = events.order(after)
        age_s = time.time() - milliseconds / 1000
        if milliseconds and age_s > STREAM_TTL_S - RESUME_MARGIN_S:
            await self.send_json({"type": events.NOTICE, "level": "resync", "text": RESYNC_TEXT})
        if stream.is_later(self.seen, than=after):
            if self.pump is not None:  # it may wait for what is newer
                self.pump.cancel()
            self.seen = after
            self.pump = asyncio.create_task(self._pump())

    async def _notice(self, text: str, frame: dict[str, Any] | None = None) -> None:
        """An error of this page's own frame: said to it alone, so it has no id."""
        body = {"type": events.NOTICE, "level": "error", "text": text}
        client_id = (frame or {}).get("client_id")
        if isinstance(client_id, str):
            body["client_id"] = client_id
        await self.send_json(body)
