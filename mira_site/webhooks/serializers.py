"""What the API takes and tells about webhooks. The secret is told once, by the answer to POST."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers

from mira_site.webhooks.constants import URL_MAX_CHARS
from mira_site.webhooks.models import Delivery, Endpoint
from mira_site.webhooks.types import EVERYTHING, EventType

EVENTS = [EVERYTHING, *EventType.values]


class WebhookIn(serializers.Serializer):
    """`events` are names of events, or `*` for all but recall.completed, which must be named."""

    url = serializers.CharField(max_length=URL_MAX_CHARS)
    events = serializers.ListField(
        child=serializers.ChoiceField(EVENTS), min_length=1, default=[EVERYTHING]
    )


class WebhookChanges(serializers.Serializer):
    url = serializers.CharField(max_length=URL_MAX_CHARS, required=False)
    events = serializers.ListField(
        child=serializers.ChoiceField(EVENTS), min_length=1, required=False
    )
    is_active = serializers.BooleanField(required=False)


class WebhookOut(serializers.ModelSerializer):
    """`breaker` is open while the endpoint is left alone, half_open while it is tried again."""

    breaker = serializers.SerializerMethodField()
    pending = serializers.IntegerField(help_text="Deliveries that wait.")
    dead = serializers.IntegerField(help_text="Deliveries given up; they can be sent again.")

    class Meta:
        model = Endpoint
        fields = ("id", "url", "events", "is_active", "created_at", "breaker", "pending", "dead")

    def get_breaker(self, endpoint: Endpoint) -> str:
        return endpoint.breaker.state(timezone.now())


class WebhookCreated(WebhookOut):
    """With the secret, which no other answer holds."""

    secret = serializers.SerializerMethodField()

    class Meta(WebhookOut.Meta):
        fields = (*WebhookOut.Meta.fields, "secret")  # type: ignore[assignment]

    def get_secret(self, endpoint: Endpoint) -> str:
        secret: str = self.context["secret"]
        return secret


class DeliveryOut(serializers.ModelSerializer):
    webhook: serializers.PrimaryKeyRelatedField[Any] = serializers.PrimaryKeyRelatedField(
        source="endpoint", read_only=True
    )
    type = serializers.CharField(source="event_type")

    class Meta:
        model = Delivery
        fields = (
            "id",
            "webhook",
            "event_id",
            "type",
            "occurred_at",
            "payload",
            "status",
            "attempts",
            "next_attempt_at",
            "finished_at",
            "response_status",
            "error_code",
        )


class DeliveryFilters(serializers.Serializer):
    status = serializers.ChoiceField(Delivery.Status.choices, required=False)
    webhook = serializers.UUIDField(required=False)
