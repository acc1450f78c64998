"""Reads about webhooks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from mira_site.accounts.models import User
from mira_site.errors import NotFound
from mira_site.webhooks.models import Delivery, Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """Over everybody: what waits, what is late by its time, what nobody will send again by itself.

    `breakers_open` counts endpoints that are left alone for now.
    """

    pending: int
    due: int
    dead: int
    breakers_open: int


def endpoints(user: User) -> QuerySet[Endpoint]:
    """The person's endpoints, oldest first, each with `pending` and `dead`, its deliveries."""
    status = Delivery.Status
    rows: QuerySet[Endpoint] = Endpoint.objects.for_user(user).annotate(
        pending=Count("deliveries", filter=Q(deliveries__status=status.PENDING)),
        dead=Count("deliveries", filter=Q(deliveries__status=status.DEAD)),
    )
    return rows


def endpoint(user: User, endpoint_id: UUID) -> Endpoint:
    """Raises NotFound."""
    found = endpoints(user).filter(id=endpoint_id).first()
    if found is None:
        raise NotFound("There is no such webhook.")
    return found


def deliveries(
    user: User, *, status: str | None = None, endpoint_id: UUID | None = None
) -> QuerySet[Delivery]:
    """Newest first."""
    rows: QuerySet[Delivery] = Delivery.objects.for_user(user)
    if status:
        rows = rows.filter(status=status)
    if endpoint_id:
        rows = rows.filter(endpoint_id=endpoint_id)
    return rows


def backlog(*, now: datetime) -> Backlog:
    """Runs inside `all_users`."""
    status = Delivery.Status
    left_open = Endpoint.objects.filter(opened_at__isnull=False, is_active=True)
    return Backlog(
        pending=Delivery.objects.filter(status=status.PENDING).count(),
        due=Delivery.objects.due(now).filter(endpoint__is_active=True).count(),
        dead=Delivery.objects.filter(status=status.DEAD).count(),
        breakers_open=left_open.count(),
    )
