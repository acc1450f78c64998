"""Where a person wants to hear of what happens, and the outbox of what is to be told."""

from __future__ import annotations

from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from mira_site.crypto import EncryptedTextField
from mira_site.owned import Owned, OwnedQuerySet
from mira_site.webhooks import breaker
from mira_site.webhooks.constants import URL_MAX_CHARS
from mira_site.webhooks.types import EVERYTHING, ONLY_BY_NAME


class EndpointQuerySet(OwnedQuerySet):
    def wanting(self, event_type: str) -> EndpointQuerySet:
        """Active endpoints that are to hear of it."""
        named = Q(events__contains=[event_type])
        if event_type not in ONLY_BY_NAME:
            named |= Q(events__contains=[EVERYTHING])
        return self.filter(named, is_active=True)


class Endpoint(Owned):
    """An address that is told of events. The breaker's columns are read through breaker.py.

    `claimed_until`: a worker is telling it; no other one does before then.
    """

    url = models.CharField(max_length=URL_MAX_CHARS)
    events = ArrayField(models.CharField(max_length=40))
    secret = EncryptedTextField()
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    failures = models.PositiveIntegerField(default=0)
    successes = models.PositiveIntegerField(default=0)
    opened_at = models.DateTimeField(null=True)
    claimed_until = models.DateTimeField(null=True)

    objects = EndpointQuerySet.as_manager()  # type: ignore[misc]  # it narrows Owned's

    class Meta:
        db_table = "webhooks_endpoints"
        ordering = ["created_at", "id"]
        indexes = [models.Index(fields=["user"], name="webhooks_endpoints_of")]
        constraints = [
            models.CheckConstraint(condition=~Q(events=[]), name="webhook_hears_of_something")
        ]

    def __str__(self) -> str:
        return self.short_id

    @property
    def breaker(self) -> breaker.Breaker:
        return breaker.Breaker(
            failures=self.failures, successes=self.successes, opened_at=self.opened_at
        )


class DeliveryQuerySet(OwnedQuerySet):
    def due(self, now: datetime) -> DeliveryQuerySet:
        return self.filter(status=Delivery.Status.PENDING, next_attempt_at__lte=now)


class Delivery(Owned):
    """One event for one endpoint, written in the transaction of what it tells of.

    `event_id` is the same for every endpoint that hears of the event, and in every attempt.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        DEAD = "dead"

    endpoint = models.ForeignKey(Endpoint, on_delete=models.CASCADE, related_name="deliveries")
    event_id = models.UUIDField()
    event_type = models.CharField(max_length=40)
    occurred_at = models.DateTimeField()
    payload = models.JSONField()
    status = models.CharField(max_length=9, choices=Status, default=Status.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    response_status = models.PositiveSmallIntegerField(null=True)
    error_code = models.CharField(max_length=32, blank=True, default="")

    objects = DeliveryQuerySet.as_manager()  # type: ignore[misc]  # it narrows Owned's

    class Meta:
        db_table = "webhooks_deliveries"
        ordering = ["-occurred_at", "-id"]
        indexes = [
            models.Index(
                fields=["next_attempt_at"],
                condition=Q(status="pending"),
                name="webhooks_deliveries_due",
            ),
            models.Index(fields=["user", "-occurred_at", "-id"], name="webhooks_deliveries_of"),
            models.Index(fields=["endpoint", "status"], name="webhooks_deliveries_to"),
            models.Index(fields=["occurred_at"], name="webhooks_deliveries_age"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status="pending", next_attempt_at__isnull=False)
                | (~Q(status="pending") & Q(next_attempt_at__isnull=True)),
                name="webhook_pending_has_a_time",
            )
        ]

    def __str__(self) -> str:
        return f"{self.event_type} {self.short_id}"
