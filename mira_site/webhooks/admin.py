"""Curation by staff: counts, times and codes. Addresses may hold secrets, so they are private."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from mira_site.admin import CuratedAdmin
from mira_site.errors import RequestError
from mira_site.webhooks import services
from mira_site.webhooks.models import Delivery, Endpoint


@admin.register(Endpoint)
class EndpointAdmin(CuratedAdmin):
    """Signing secrets are on no page, whatever the reason."""

    private_fields = ("url",)
    fields = (
        "id",
        "user",
        "url",
        "events",
        "is_active",
        "created_at",
        "failures",
        "successes",
        "opened_at",
        "claimed_until",
    )
    list_display = ("short_id", "user", "is_active", "failures", "opened_at", "created_at")
    list_filter = ("is_active", ("opened_at", admin.EmptyFieldListFilter))
    search_fields = ("=id", "=user__username")
    ordering = ("-created_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        return super().get_queryset(request).defer("secret", *self.private_fields)


@admin.register(Delivery)
class DeliveryAdmin(CuratedAdmin):
    private_fields = ("payload",)
    list_display = (
        "short_id",
        "user",
        "endpoint",
        "event_type",
        "status",
        "attempts",
        "response_status",
        "error_code",
        "next_attempt_at",
        "occurred_at",
    )
    list_filter = ("status", "event_type", "error_code", "occurred_at")
    search_fields = ("=id", "=event_id", "=endpoint__id", "=user__username")
    date_hierarchy = "occurred_at"
    ordering = ("-occurred_at",)
    actions = ("send_again",)

    @admin.action(description="Send the chosen dead letters again", permissions=["view"])
    def send_again(self, request: HttpRequest, chosen: QuerySet[Delivery]) -> None:
        sent, left = 0, 0
        for row in chosen.filter(status=Delivery.Status.DEAD).select_related("user"):
            try:
                services.resend(user=row.user, delivery_id=row.pk)
                sent += 1
            except RequestError:
                left += 1
        self.message_user(request, f"{sent} are sent again.")
        if left:
            self.message_user(
                request, f"{left} left: their webhooks are switched off.", messages.WARNING
            )
