"""What came of a message: MIRA's answer to it, and the memories that rest on it."""

from __future__ import annotations

from uuid import UUID

from conversations.models import Message
from conversations.types import CameOf
from memory import selectors as memory
from mira_site.accounts.models import User
from mira_site.errors import NotFound


def what_came_of(user: User, message_id: UUID) -> CameOf:
    """Raises NotFound."""
    rows = Message.objects.for_user(user).select_related("turn", "segment")
    message = rows.defer("search_vector").filter(pk=message_id).first()
    if message is None:
        raise NotFound("There is no such message.")
    return CameOf(
        message=message,
        answer=_answer(message),
        resting=memory.resting_on(user, [message_id]),
    )


def _answer(message: Message) -> Message | None:
    if message.role != Message.Role.USER or message.turn is None:
        return None
    found: Message | None = (
        message.turn.messages.filter(role=Message.Role.ASSISTANT).defer("search_vector").first()
    )
    return found
