"""Telling an endpoint what is due for it: in order, by one worker at a time, with retries.

A delivery may arrive twice (a worker that dies between the answer and its commit), with the same
event id. No database transaction is open while the other side is awaited.
"""

from __future__ import annotations

import json
import random
import time
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from mira_site import metrics
from mira_site.accounts.models import User
from mira_site.webhooks import calling
from mira_site.webhooks.calling import Answer
from mira_site.webhooks.constants import (
    CLAIM_S,
    RETRY_AFTER_S,
    RETRY_JITTER,
    RUN_MAX,
    RUN_MAX_S,
    SIGNATURE_VERSION,
)
from mira_site.webhooks.models import Delivery, Endpoint
from mira_site.webhooks.signing import signature

log = structlog.get_logger(__name__)

BAD_STATUS = "status"


def run(user: User, endpoint_id: UUID) -> bool:
    """Send what is due to one endpoint. True if more is due when its turn is over."""
    claim = _claim(user, endpoint_id, timezone.now())
    if claim is None:
        return False
    over_at = time.monotonic() + RUN_MAX_S
    try:
        for _ in range(RUN_MAX):
            if time.monotonic() > over_at or not _send_next(user, endpoint_id):
                break
            claim = _keep(user, endpoint_id, claim)
            if claim is None:
                return False
    finally:
        if claim is not None:
            _claimed(user, endpoint_id, claim).update(claimed_until=None)
    # What was committed while this run ended found it still at work and left it to this look.
    return bool(_due(user, endpoint_id, timezone.now()).exists())


def _due(user: User, endpoint_id: UUID, now: datetime) -> QuerySet[Delivery]:
    rows: QuerySet[Delivery] = Delivery.objects.for_user(user).due(now)
    return rows.filter(endpoint_id=endpoint_id, endpoint__is_active=True)


def _claimed(user: User, endpoint_id: UUID, claim: datetime) -> QuerySet[Endpoint]:
    rows: QuerySet[Endpoint] = Endpoint.objects.for_user(user)
    return rows.filter(id=endpoint_id, claimed_until=claim)


def _claim(user: User, endpoint_id: UUID, now: datetime) -> datetime | None:
    """Until when the endpoint is this worker's; None if it is another's, or switched off."""
    until = now + timedelta(seconds=CLAIM_S)
    free = Q(claimed_until__isnull=True) | Q(claimed_until__lte=now)
    rows = Endpoint.objects.for_user(user).filter(free, id=endpoint_id, is_active=True)
    return until if rows.update(claimed_until=until) else None


def _keep(user: User, endpoint_id: UUID, claim: datetime) -> datetime | None:
    until = timezone.now() + timedelta(seconds=CLAIM_S)
    return until if _claimed(user, endpoint_id, claim).update(claimed_until=until) else None


def _send_next(user: User, endpoint_id: UUID) -> bool:
    """Make one attempt. False if nothing is due, or the breaker is open."""
    now = timezone.now()
    endpoint = Endpoint.objects.for_user(user).filter(id=endpoint_id, is_active=True).first()
    if endpoint is None:
        return False
    due = _due(user, endpoint_id, now)
    if endpoint.breaker.state(now) == "open":
        count = due.update(next_attempt_at=endpoint.breaker.opens_until)
        metrics.webhooks_held(count)
        return False
    delivery = due.order_by("next_attempt_at", "occurred_at", "id").first()
    if delivery is None:
        return False
    answer = _attempt(endpoint, delivery, now)
    _note(user, endpoint, delivery, answer, timezone.now())
    return True


def _attempt(endpoint: Endpoint, delivery: Delivery, now: datetime) -> Answer:
    body = json.dumps(
        {
            "id": str(delivery.event_id),
            "type": delivery.event_type,
            "timestamp": delivery.occurred_at.isoformat(),
            "payload": delivery.payload,
        },
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode()
    timestamp = int(now.timestamp())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "MIRA-Webhooks/1",
        "X-MIRA-Event-ID": str(delivery.event_id),
        "X-MIRA-Event-Type": delivery.event_type,
        "X-MIRA-Webhook-ID": str(endpoint.id),
        "X-MIRA-Timestamp": str(timestamp),
        "X-MIRA-Signature": signature(endpoint.secret, timestamp=timestamp, body=body),
        "X-MIRA-Signature-Version": SIGNATURE_VERSION,
    }
    with metrics.webhook_timer():
        return calling.post(endpoint.url, body=body, headers=[*headers.items()])


@transaction.atomic
def _note(
    user: User, endpoint: Endpoint, delivery: Delivery, answer: Answer, now: datetime
) -> None:
    """Write down how the attempt ended. Nothing, if the endpoint was deleted meanwhile."""
    rows = Delivery.objects.for_user(user).select_for_update()
    fresh = rows.filter(id=delivery.id, status=Delivery.Status.PENDING).first()
    if fresh is None:
        return
    after = endpoint.breaker.after(succeeded=answer.succeeded, now=now)
    Endpoint.objects.for_user(user).filter(id=endpoint.id).update(
        failures=after.failures, successes=after.successes, opened_at=after.opened_at
    )
    fresh.attempts += 1
    fresh.response_status = answer.status
    fresh.error_code = "" if answer.succeeded else answer.error_code or BAD_STATUS
    fresh.status, wait_s = _outcome(answer, fresh.attempts)
    fresh.next_attempt_at = None if wait_s is None else now + timedelta(seconds=wait_s)
    fresh.finished_at = now if wait_s is None else None
    fresh.save()
    outcome = "retried" if wait_s is not None else str(fresh.status)
    metrics.webhook_attempted(outcome)
    log.info(
        "webhook.attempted",
        endpoint=endpoint.short_id,
        type=fresh.event_type,
        outcome=outcome,
        attempt=fresh.attempts,
        status=answer.status,
        code=fresh.error_code,
    )


def _outcome(answer: Answer, attempts: int) -> tuple[str, float | None]:
    """The delivery's status, and after how many seconds it is tried again."""
    if answer.succeeded:
        return Delivery.Status.DELIVERED, None
    if attempts > len(RETRY_AFTER_S):
        return Delivery.Status.DEAD, None
    spread = random.uniform(1 - RETRY_JITTER, 1 + RETRY_JITTER)  # noqa: S311 (no secret)
    return Delivery.Status.PENDING, RETRY_AFTER_S[attempts - 1] * spread
