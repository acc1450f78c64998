"""Files of messages as rows: kept on upload, given to a message when sent, deleted with it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import transaction

from conversations import files
from conversations.constants import FILES_MAX, FILES_UNSENT_HOURS, FILES_UNSENT_MAX
from conversations.models import Attachment, AttachmentBody, Message
from memory.types import Imprint
from mira_site import tokens
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, Conflict, LimitReached, NotFound
from mira_site.owned import OwnedQuerySet

log = structlog.get_logger(__name__)


def keep(user: User, *, name: str, content: bytes, at: datetime) -> Attachment:
    """Keep an uploaded file, of no message yet.

    Raises TooLarge, BadRequest for what cannot be taken, LimitReached with too many unsent ones.
    """
    if _unsent(user).count() >= FILES_UNSENT_MAX:
        raise LimitReached("Too many files wait to be sent. Send or remove some of them first.")
    looked = files.look(name, content)
    with transaction.atomic():
        row: Attachment = Attachment.objects.create(
            user=user,
            name=looked.name,
            media_type=looked.media_type,
            size=len(looked.content),
            sha256=hashlib.sha256(looked.content).hexdigest(),
            width=looked.width,
            height=looked.height,
            pages=looked.pages,
            text_tokens=tokens.estimate(looked.text),
            is_text_cut=looked.is_text_cut,
            is_shown_whole=looked.is_shown_whole,
            created_at=at,
        )
        AttachmentBody.objects.create(
            user=user, attachment=row, content=looked.content, text=looked.text
        )
    log.info("file.kept", file=row.short_id, media_type=row.media_type, bytes=row.size)
    return row


def file(user: User, file_id: UUID) -> Attachment:
    """A file, with its message at hand. Raises NotFound."""
    rows = Attachment.objects.for_user(user).select_related("message")
    row: Attachment | None = rows.filter(pk=file_id).first()
    if row is None:
        raise NotFound("There is no such file.")
    return row


def file_content(user: User, file_id: UUID) -> tuple[Attachment, bytes]:
    """A file and what is in it. Raises NotFound."""
    row = file(user, file_id)
    body = AttachmentBody.objects.for_user(user).only("content").get(attachment=row)
    return row, body.content


@transaction.atomic
def discard(user: User, file_id: UUID) -> None:
    """Delete a file that was not sent. Raises NotFound, Conflict."""
    row: Attachment | None = (
        Attachment.objects.for_user(user).select_for_update().filter(pk=file_id).first()
    )
    if row is None:
        raise NotFound("There is no such file.")
    if row.message_id is not None:
        raise Conflict("This file was sent. It goes when its message is deleted.")
    row.delete()


def give(user: User, message: Message, file_ids: Sequence[UUID]) -> None:
    """Make files those of a new message, in this order; runs in the transaction that stores it.

    Raises BadRequest if one is not there, not the person's, or was sent already.
    """
    wanted = list(dict.fromkeys(file_ids))
    if len(wanted) > FILES_MAX:
        raise _refused(f"At most {FILES_MAX} files go with one message. Send the rest after it.")
    found = {row.pk: row for row in _unsent(user).select_for_update().filter(pk__in=wanted)}
    if len(found) < len(wanted):
        raise _refused(
            "One of the files is not there any more or was sent already. Attach it anew."
        )
    for position, file_id in enumerate(wanted):
        found[file_id].message, found[file_id].position = message, position
    Attachment.objects.bulk_update(found.values(), ["message", "position"])


def delete_unsent(*, at: datetime) -> int:
    """Delete what was uploaded and not sent within a day. Runs inside `all_users`."""
    until = at - timedelta(hours=FILES_UNSENT_HOURS)
    rows = Attachment.objects.filter(message__isnull=True, created_at__lt=until)
    _, by_model = rows.delete()
    return by_model.get(Attachment._meta.label, 0)


def close_telling(
    user: User, imprint: Imprint, segment_ids: Collection[UUID], *, at: datetime
) -> int:
    """No model looks again into files of these segments that tell what is forgotten.

    The person keeps the files, as they keep their messages. Returns how many were closed.
    """
    rows = AttachmentBody.objects.for_user(user).filter(
        attachment__message__segment__in=segment_ids, attachment__forgotten_at__isnull=True
    )
    telling = [
        file_id
        for file_id, text in rows.values_list("attachment_id", "text").iterator()
        if text and imprint.is_in(text)
    ]
    return int(Attachment.objects.for_user(user).filter(pk__in=telling).update(forgotten_at=at))


def _unsent(user: User) -> OwnedQuerySet:
    return Attachment.objects.for_user(user).filter(message__isnull=True)


def _refused(detail: str) -> BadRequest:
    return BadRequest(detail, fields={"attachments": detail})
