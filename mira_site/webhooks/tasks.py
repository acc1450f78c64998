"""Celery entry points."""

from __future__ import annotations

from uuid import UUID

import structlog
from celery import shared_task
from django.db import transaction
from django.utils import timezone
from kombu.exceptions import OperationalError as QueueUnavailable

from mira_site.accounts import selectors as accounts
from mira_site.isolation import UserTask, all_users
from mira_site.webhooks import outbox, sending
from mira_site.webhooks.constants import KEPT_FOR, SWEEP_MAX

log = structlog.get_logger(__name__)


@shared_task(base=UserTask)
def deliver(user_id: str, endpoint_id: str) -> None:
    """Tell one endpoint what is due; what fails is due again later."""
    if sending.run(accounts.user(user_id), UUID(endpoint_id)):
        start(UUID(user_id), UUID(endpoint_id))


@shared_task
def sweep() -> None:
    """One task for each endpoint with something due: retries, and what the queue lost."""
    with all_users("webhook deliveries that are due", routine=True):
        found = outbox.endpoints_due(at=timezone.now(), limit=SWEEP_MAX)
    for user_id, endpoint_id in found:
        deliver.delay(str(user_id), str(endpoint_id))


@shared_task
def delete_old() -> None:
    with all_users("webhook deliveries past their time", routine=True):
        outbox.delete_older(timezone.now() - KEPT_FOR)


def start(user_id: UUID, endpoint_id: UUID) -> None:
    """Have what is due sent soon, after the commit. Without the queue, the sweep finds it."""
    # No partial: where a hook fails, Django logs its __qualname__, which a partial has not.
    transaction.on_commit(lambda: _start(str(user_id), str(endpoint_id)), robust=True)


def _start(user_id: str, endpoint_id: str) -> None:
    try:
        deliver.delay(user_id, endpoint_id)
    except QueueUnavailable as error:
        log.warning("webhook.not_queued", reason=type(error).__name__)
