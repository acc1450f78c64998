"""Everything a prompt is composed of, gathered before it and kept after it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone

from conversations import continuity, file_blocks, peanut_gallery, selectors
from conversations.models import ComposedContext, ContextSection, Message, Turn
from conversations.prompt import Composed
from conversations.types import PersonView, Prepared, TurnContext
from memory import selectors as memory
from memory.types import Recalled
from mira_site import tokens
from mira_site.accounts import selectors as accounts


def gather(
    turn: Turn,
    history: Sequence[Message],
    recalled: Sequence[Recalled],
    prepared: Prepared,
    *,
    now: datetime,
) -> TurnContext:
    """What trinkets may look at, for the newest message, which is the last of `history`."""
    local = accounts.local_now(turn.user, now)
    person = PersonView(
        name=turn.user.first_name or turn.user.username, timezone=str(accounts.zone(turn.user))
    )
    before = continuity.continuity(turn.user, before=turn.segment.opened_at)
    previous = history[-2].created_at if len(history) > 1 else None
    if previous is None and before.tail:
        previous = before.tail[-1].created_at
    return TurnContext(
        person=person,
        now=local,
        question=history[-1].text,
        files=tuple(file_blocks.names(history[-1])),
        continuity=before,
        surfaced=tuple(recalled),
        previous_message_at=previous,
        open_question=memory.open_question(turn.user, today=local.date(), now=now),
        complexity=prepared.complexity,
        number=turn.number,
        guidance=tuple(peanut_gallery.active(turn)),
        brief=selectors.brief(turn),
    )


def record(turn: Turn, composed: Composed, *, counted_tokens: int) -> None:
    """Keep what was sent, for the page that shows it; sections alike in many turns are kept once.

    `counted_tokens` is what the provider counted of the first request, 0 if it did not come to it.
    """
    wanted = {
        (one.name, hashlib.sha256(one.text.encode()).hexdigest()): one for one in composed.sections
    }
    ContextSection.objects.bulk_create(
        [
            ContextSection(
                user_id=turn.user_id,
                segment_id=turn.segment_id,
                name=name,
                sha256=digest,
                text=one.text,
                tokens=tokens.estimate(one.text),
            )
            for (name, digest), one in wanted.items()
        ],
        ignore_conflicts=True,
    )
    rows = ContextSection.objects.for_user(turn.user_id).filter(
        segment_id=turn.segment_id, sha256__in=[digest for _, digest in wanted]
    )
    stored = {(name, digest): pk for pk, name, digest in rows.values_list("id", "name", "sha256")}
    positions = [one.position for one in composed.window if one.position is not None]
    ComposedContext.objects.update_or_create(
        turn=turn,
        defaults={
            "user_id": turn.user_id,
            "sections": [
                {"id": str(stored[key]), "slot": one.slot.name.lower()}
                for key, one in wanted.items()
            ],
            "tools": [tool.name for tool in composed.request.tools],
            "first_position": min(positions, default=None),
            "last_position": max(positions, default=None),
            "history_tokens": composed.history_tokens,
            "tokens": composed.tokens,
            "counted_tokens": counted_tokens,
            "composed_at": timezone.now(),
        },
    )
    peanut_gallery.count_shown(peanut_gallery.active(turn))
