"""Writes of webhooks: the front door. `emit` is what the rest of MIRA calls."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.utils import timezone

from mira_site.accounts.models import User
from mira_site.errors import BadRequest, Conflict, LimitReached, NotFound
from mira_site.webhooks import outbox, tasks
from mira_site.webhooks.addresses import checked_url
from mira_site.webhooks.constants import (
    ENDPOINTS_MAX,
    SECRET_BYTES,
    SECRET_PREFIX,
    WANTED_FOR_S,
)
from mira_site.webhooks.models import Delivery, Endpoint
from mira_site.webhooks.types import EVERYTHING, TEST, EventType

log = structlog.get_logger(__name__)

_wanted: dict[tuple[UUID, str], tuple[float, bool]] = {}
_WANTED_MAX = 10_000  # people times types remembered at once


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEndpoint:
    """An endpoint and its secret in clear: shown once."""

    endpoint: Endpoint
    secret: str


def emit(user: User, event_type: EventType, payload: Mapping[str, Any]) -> None:
    """Tell the person's endpoints that something happened. See `emit_all`."""
    emit_all(user, event_type, [payload])


def emit_all(user: User, event_type: EventType, payloads: Iterable[Mapping[str, Any]]) -> None:
    """One event a payload, all of one type, for every endpoint that wants it.

    Call it in the transaction of what happened. A payload is JSON of ids, types, places, counts
    and times, never a text: who hears of an event fetches the text over the API, as the person.
    Costs one query where nobody listens, and the payloads are then not even looked at.
    """
    for endpoint_id in outbox.write(user, event_type, payloads, at=timezone.now()):
        tasks.start(user.pk, endpoint_id)


def is_wanted(user: User, event_type: EventType) -> bool:
    """Whether anybody listens, as known for some seconds: for what happens too often to ask.

    A new endpoint is noticed by every process within WANTED_FOR_S.
    """
    key, now = (user.pk, str(event_type)), time.monotonic()
    known = _wanted.get(key)
    if known is None or known[0] < now:
        if len(_wanted) >= _WANTED_MAX:
            _wanted.clear()
        wanted = bool(Endpoint.objects.for_user(user).wanting(event_type).exists())
        known = _wanted[key] = (now + WANTED_FOR_S, wanted)
    return known[1]


@transaction.atomic
def create(*, user: User, url: str, events: Sequence[str]) -> NewEndpoint:
    """A new endpoint, switched on. Its secret is in the answer, and nowhere else ever again.

    Raises BadRequest for an address that is not called or an unknown event, LimitReached.
    """
    url, names = checked_url(url), _checked_events(events)
    User.objects.select_for_update().get(pk=user.pk)  # two at once count each other
    if Endpoint.objects.for_user(user).count() >= ENDPOINTS_MAX:
        raise LimitReached(f"There are {ENDPOINTS_MAX} webhooks. Delete one you do not need.")
    secret = SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    endpoint = Endpoint.objects.create(
        user=user, url=url, events=names, secret=secret, created_at=timezone.now()
    )
    _wanted.clear()
    log.info("webhook.created", endpoint=endpoint.short_id, events=names)
    return NewEndpoint(endpoint=endpoint, secret=secret)


@transaction.atomic
def change(
    *,
    user: User,
    endpoint_id: UUID,
    url: str | None = None,
    events: Sequence[str] | None = None,
    is_active: bool | None = None,
) -> Endpoint:
    """Change what is given. Switched off, it keeps what waits and hears of nothing new.

    A new address, and switching on, close the breaker. Raises NotFound, BadRequest.
    """
    endpoint = _locked(user, endpoint_id)
    if events is not None:
        endpoint.events = _checked_events(events)
    if url is not None:
        endpoint.url = checked_url(url)
    is_fresh = url is not None or bool(is_active and not endpoint.is_active)
    if is_fresh:
        endpoint.failures, endpoint.successes, endpoint.opened_at = 0, 0, None
    if is_active is not None:
        endpoint.is_active = is_active
    endpoint.save()
    if is_fresh:
        tasks.start(user.pk, endpoint.id)
    _wanted.clear()
    log.info("webhook.changed", endpoint=endpoint.short_id, is_active=endpoint.is_active)
    return endpoint


@transaction.atomic
def delete(*, user: User, endpoint_id: UUID) -> None:
    """With what was still to be told to it. Raises NotFound."""
    endpoint = _locked(user, endpoint_id)
    log.info("webhook.deleted", endpoint=endpoint.short_id)
    endpoint.delete()
    _wanted.clear()


@transaction.atomic
def send_test(*, user: User, endpoint_id: UUID) -> Delivery:
    """An event of type webhook.test, to this endpoint alone. Raises NotFound, Conflict if off."""
    endpoint = _locked(user, endpoint_id)
    _require_active(endpoint)
    now = timezone.now()
    (delivery,) = outbox.put(user, [endpoint.id], TEST, [{}], at=now)
    tasks.start(user.pk, endpoint.id)
    return delivery


@transaction.atomic
def resend(*, user: User, delivery_id: UUID) -> Delivery:
    """Send a delivery again, whatever came of it. Raises NotFound, Conflict if it is off."""
    rows = Delivery.objects.for_user(user).select_for_update(of=["self"])
    delivery = rows.select_related("endpoint").filter(id=delivery_id).first()
    if delivery is None:
        raise NotFound("There is no such delivery; they are kept for 30 days.")
    _require_active(delivery.endpoint)
    outbox.send_again(delivery, at=timezone.now())
    tasks.start(user.pk, delivery.endpoint_id)
    log.info("webhook.resent", delivery=delivery.short_id)
    return delivery  # type: ignore[no-any-return]


def _locked(user: User, endpoint_id: UUID) -> Endpoint:
    endpoint = Endpoint.objects.for_user(user).select_for_update().filter(id=endpoint_id).first()
    if endpoint is None:
        raise NotFound("There is no such webhook.")
    return endpoint  # type: ignore[no-any-return]


def _require_active(endpoint: Endpoint) -> None:
    if not endpoint.is_active:
        raise Conflict("This webhook is switched off. Switch it on first.")


def _checked_events(events: Sequence[str]) -> list[str]:
    """In order, without repeats. Raises BadRequest."""
    names = list(dict.fromkeys(str(name) for name in events))
    if not names or any(name not in {*EventType.values, EVERYTHING} for name in names):
        known = ", ".join([EVERYTHING, *EventType.values])
        raise BadRequest(
            "Some fields need another value; see errors.",
            fields={"events": f"Name one or more of {known}."},
        )
    return names
