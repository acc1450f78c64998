"""What the person asks to remember is stored in the turn that answers, with and without a model."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from django.db import DatabaseError
from django.utils import timezone

from conversations.models import Message, ToolCall
from memory import services as memory
from memory.types import Kept, SourceMessage
from mira_site.accounts.models import User
from mira_site.errors import MiraError

log = structlog.get_logger(__name__)


def keep_asked(user: User, asked: SourceMessage, *, calls: Sequence[ToolCall] = ()) -> Kept:
    """What was stored of the message, if it asks to remember.

    What the model stored by its tool in this turn is not stored twice, and nothing that is off the
    record. An answer in hand is worth
    more than this: whatever fails here is left to the collapse, which reads the message anyway.
    """
    if any(_has_stored(call) for call in calls) or _is_off_record(user, asked):
        return Kept()
    try:
        return memory.remember_asked(user=user, message=asked, at=timezone.now())
    except (MiraError, DatabaseError) as error:
        log.warning("step.skipped", step="remember_asked", reason=type(error).__name__)
        return Kept()


def _is_off_record(user: User, asked: SourceMessage) -> bool:
    rows = Message.objects.for_user(user).filter(pk=asked.message_id, is_off_record=True)
    return bool(rows.exists())


def _has_stored(call: ToolCall) -> bool:
    is_storing = call.name == "memory_tool" and call.input.get("operation") == "create_memory"
    return is_storing and not call.is_error
