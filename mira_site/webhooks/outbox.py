"""The outbox: what happened is written down beside what it tells of, and started on its way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import structlog
from django.db import transaction

from mira_site.accounts.models import User
from mira_site.webhooks.models import Delivery, Endpoint

log = structlog.get_logger(__name__)

Payload = Mapping[str, Any]


def write(user: User, event_type: str, payloads: Iterable[Payload], *, at: datetime) -> list[UUID]:
    """One event a payload, for every endpoint that wants it. Ids of those endpoints.

    It belongs in the transaction of what it tells of: a rollback takes the events along. One query
    where nobody listens: the payloads are then not even looked at.
    """
    listening = Endpoint.objects.for_user(user).wanting(event_type)
    found = list(listening.values_list("id", flat=True))
    if not found or not put(user, found, event_type, payloads, at=at):
        return []
    return found


def put(
    user: User,
    endpoint_ids: Sequence[UUID],
    event_type: str,
    payloads: Iterable[Payload],
    *,
    at: datetime,
) -> list[Delivery]:
    """Deliveries to just these endpoints."""
    rows = []
    for payload in payloads:
        event_id = uuid4()
        rows += [
            Delivery(
                user=user,
                endpoint_id=endpoint_id,
                event_id=event_id,
                event_type=event_type,
                occurred_at=at,
                payload=dict(payload),
                next_attempt_at=at,
            )
            for endpoint_id in endpoint_ids
        ]
    made: list[Delivery] = Delivery.objects.bulk_create(rows)
    return made


@transaction.atomic
def send_again(delivery: Delivery, *, at: datetime) -> Delivery:
    """Due at once; one that was finished starts from its first attempt, under its old event id."""
    if delivery.status != Delivery.Status.PENDING:
        delivery.attempts = 0
        delivery.finished_at = None
    delivery.status = Delivery.Status.PENDING
    delivery.next_attempt_at = at
    delivery.save(update_fields=["attempts", "finished_at", "status", "next_attempt_at"])
    return delivery


def endpoints_due(*, at: datetime, limit: int) -> list[tuple[UUID, UUID]]:
    """(user id, endpoint id) of everyone with something due. Runs inside `all_users`."""
    rows = Delivery.objects.due(at).filter(endpoint__is_active=True)
    free = rows.exclude(endpoint__claimed_until__gt=at)
    return list(free.order_by().values_list("user_id", "endpoint_id").distinct()[:limit])


def delete_older(than: datetime) -> int:
    """Take out what is past its time, delivered or not. Runs inside `all_users`."""
    deleted, _ = Delivery.objects.filter(occurred_at__lt=than).delete()
    if deleted:
        log.info("webhook_deliveries.deleted", deliveries=deleted)
    return deleted
