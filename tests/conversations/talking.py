"""A conversation in tests, by the same doors as in life, without the queue between."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import time_machine
from django.db import connection
from django.utils import timezone

from conversations import collapse, services, stream, turn
from conversations.events import StoredEvent
from conversations.models import Message, Segment, Turn
from memory import services as memory
from memory.models import Memory
from mira_site import isolation
from mira_site.accounts.models import User
from mira_site.errors import MiraError

T = TypeVar("T")


def tell(user: User, text: str = "Good morning.", *, at: datetime | None = None) -> Turn:
    """Accepted and not yet answered."""
    with time_machine.travel(at or timezone.now(), tick=True):
        return services.accept_message(user=user, text=text, client_id=uuid.uuid4())


def answer(asked: Turn) -> Turn:
    """The turn after a worker has run it."""
    turn.run(user_id=asked.user_id, turn_id=asked.pk)
    return Turn.objects.for_user(asked.user_id).select_related("segment", "user").get(pk=asked.pk)


def say(user: User, text: str = "Good morning.", *, at: datetime | None = None) -> Turn:
    """Accepted and answered."""
    with time_machine.travel(at or timezone.now(), tick=True):
        return answer(tell(user, text))


def reply(ended: Turn) -> str:
    return said(ended).text


def said(ended: Turn) -> Message:
    """MIRA's message of the turn."""
    message: Message = ended.messages.get(role=Message.Role.ASSISTANT)
    return message


def heard(user: User) -> list[StoredEvent]:
    """Every event of the person so far."""
    return stream.after(user.pk, stream.START)


def names(user: User) -> list[str]:
    return [event.type for event in heard(user)]


def quiet(user: User, *texts: str, minutes: int = 90) -> Segment:
    """A segment with these messages, the last of them `minutes` ago, each answered."""
    at = timezone.now() - timedelta(minutes=minutes + len(texts) - 1)
    for number, text in enumerate(texts or ("I moved to Graz in May.",)):
        ended = say(user, text, at=at + timedelta(minutes=number))
    return ended.segment


def put_to_rest(user: User) -> Segment:
    """The active segment, collapsed."""
    segment = Segment.objects.for_user(user).get(status=Segment.Status.ACTIVE)
    done = collapse.run(user=user, segment_id=segment.pk, quiet=False)
    assert done is not None
    return done


def know(user: User, text: str, **fields: Any) -> Memory:
    return memory.create(user=user, text=text, **fields)


def at_once(user: User, *calls: Callable[[], T]) -> list[T | MiraError]:
    """Results, or errors of ours, of calls that start at the same moment in threads."""
    gate = threading.Barrier(len(calls))
    results: dict[int, T | MiraError] = {}

    def run(number: int, call: Callable[[], T]) -> None:
        try:
            with isolation.acting_as(user.pk):
                gate.wait(timeout=10)
                results[number] = call()
        except MiraError as error:
            results[number] = error
        finally:
            connection.close()

    threads = [
        threading.Thread(target=run, args=(number, call)) for number, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    return [results[number] for number in range(len(calls))]
