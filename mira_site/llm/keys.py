"""A person's own key at the provider. It goes in, and comes out only towards the provider."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.utils import timezone

from mira_site import isolation
from mira_site.errors import BadRequest
from mira_site.llm.models import ProviderKey

log = structlog.get_logger(__name__)
_KEY = re.compile(r"[!-~]{12,500}")  # what can stand in a header, and no less than a key has


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyOnFile:
    """All that is shown of a key."""

    last_four: str
    set_at: datetime


def on_file(user_id: uuid.UUID | str) -> KeyOnFile | None:
    row = ProviderKey.objects.for_user(user_id).defer("secret").first()
    return KeyOnFile(last_four=row.last_four, set_at=row.set_at) if row else None


def in_scope() -> str:
    """The key of the user in scope, in clear; "" if they have none, or nobody is in scope."""
    user_id = isolation.current().user_id
    row = ProviderKey.objects.for_user(user_id).first() if user_id else None
    return str(row.secret) if row else ""


def is_in_scope() -> bool:
    """Has the user in scope a key of their own?"""
    user_id = isolation.current().user_id
    return bool(user_id) and ProviderKey.objects.for_user(user_id).exists()


def keep(*, user_id: uuid.UUID, key: str) -> None:
    """Store the key in place of an earlier one. Raises BadRequest for what cannot be a key."""
    key = key.strip()
    if not _KEY.fullmatch(key):
        raise BadRequest(
            "This does not look like a key: 12 characters or more, none of them a space.",
            fields={"key": "A key has 12 characters or more, none of them a space."},
        )
    ProviderKey.objects.for_user(user_id).update_or_create(
        user_id=user_id,
        defaults={"secret": key, "last_four": key[-4:], "set_at": timezone.now()},
    )
    log.info("provider_key.kept", account=str(user_id))


def drop(*, user_id: uuid.UUID) -> bool:
    """Forget the key; False if there was none."""
    count, _ = ProviderKey.objects.for_user(user_id).delete()
    if count:
        log.info("provider_key.dropped", account=str(user_id))
    return bool(count)
