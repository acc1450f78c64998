"""What a person's webhooks are told of their memories: ids, types, places, counts, never a text.

Called in the transaction of what happened; one query where nobody listens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from memory.causality import CAUSAL
from memory.models import ForgetReceipt, Memory, MemoryLink
from memory.types import RecallContext
from mira_site import metrics
from mira_site.accounts.models import User
from mira_site.errors import EmbeddingsUnavailable
from mira_site.webhooks import services as webhooks
from mira_site.webhooks.types import EventType


def stored(user: User, memories: Sequence[Memory]) -> None:
    """New rows, merges among them."""
    metrics.stored(len(memories))
    if memories:
        payloads = (
            {
                "memory": str(one.id),
                "memory_type": one.memory_type,
                "wing": one.wing,
                "room": one.room,
                "segment": _id(one.source_segment_id),
                "said_at": one.said_at.isoformat(),
                "is_held_back": one.quarantined_at is not None,
            }
            for one in memories
        )
        webhooks.emit_all(user, EventType.MEMORY_STORED, payloads)


def archived(user: User, memories: Iterable[Memory], *, reason: str) -> None:
    """`memories` may be a query: it is only made if somebody listens."""
    payloads = (
        {
            "memory": str(one.id),
            "memory_type": one.memory_type,
            "wing": one.wing,
            "room": one.room,
            "reason": reason,
        }
        for one in memories
    )
    webhooks.emit_all(user, EventType.MEMORY_ARCHIVED, payloads)


def deleted(user: User, memory_ids: Collection[UUID], receipt: ForgetReceipt) -> None:
    """One event for all that was forgotten at once."""
    payload = {
        "memories": sorted(map(str, memory_ids)),
        "receipt": str(receipt.id),
        "counts": receipt.counts,
    }
    webhooks.emit(user, EventType.MEMORY_DELETED, payload)


def withdrawn(user: User, memory_ids: Collection[UUID]) -> None:
    """A collapse was taken back: told as a deletion, of which there is no receipt."""
    payload = {
        "memories": sorted(map(str, memory_ids)),
        "receipt": None,
        "counts": {"memories": len(memory_ids)},
    }
    webhooks.emit(user, EventType.MEMORY_DELETED, payload)


def linked(user: User, links: Sequence[MemoryLink]) -> None:
    """New links; of those only the causal ones are told."""
    causal = [one for one in links if one.link_type in CAUSAL]
    if causal:
        payloads = (
            {
                "link": str(one.id),
                "relation": str(one.link_type),
                "source": str(one.source_id),
                "target": str(one.target_id),
                "weight": one.weight,
                "author": str(one.author),
            }
            for one in causal
        )
        webhooks.emit_all(user, EventType.CAUSAL_DETECTED, payloads)


def recalled(user: User, context: RecallContext) -> None:
    """A context was recalled: counted for the operator, and told to who named this event."""
    metrics.recalled(
        candidates=len(context.items) + len(context.left_out),
        selected=Counter(str(item.mode) for item in context.items),
        tokens=context.tokens,
        budget_tokens=context.budget_tokens,
        quality=context.quality if context.items else None,
    )
    if not webhooks.is_wanted(user, EventType.RECALL_COMPLETED):
        return
    items = [
        {"memory": str(item.memory.id), "mode": str(item.mode), "tokens": item.tokens}
        for item in context.items
    ]
    payload = {
        "budget": context.budget_tokens,
        "tokens": context.tokens,
        "quality": round(context.quality, 4),
        "is_degraded": context.is_degraded,
        "items": items,
        "left_out": len(context.left_out),
    }
    webhooks.emit(user, EventType.RECALL_COMPLETED, payload)


@contextmanager
def embedding(user: User, *, segment_id: UUID | None = None) -> Iterator[None]:
    """Within the block vectors are made of what is to be stored; if that fails, it is told.

    Stands outside the transaction that stores, which a failure undoes.
    """
    try:
        yield
    except EmbeddingsUnavailable as error:
        payload = {"segment": _id(segment_id), "code": error.code}
        webhooks.emit(user, EventType.MEMORY_EMBEDDING_FAILED, payload)
        raise


def _id(given: UUID | None) -> str | None:
    return None if given is None else str(given)
