"""Addresses of this app: pages, and operations under /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from mira_site.webhooks import api as operations
from mira_site.webhooks import views

pages: list[URLPattern | URLResolver] = [
    path("settings/webhooks/", views.webhooks, name="webhooks"),
    path("settings/webhooks/<uuid:endpoint_id>/switch/", views.switch, name="webhook_switch"),
    path("settings/webhooks/<uuid:endpoint_id>/delete/", views.delete, name="webhook_delete"),
    path("settings/webhooks/<uuid:endpoint_id>/test/", views.test, name="webhook_test"),
    path(
        "settings/webhooks/deliveries/<uuid:delivery_id>/resend/",
        views.resend,
        name="webhook_resend",
    ),
]
api: list[URLPattern | URLResolver] = [
    path("webhooks/", operations.Webhooks.as_view()),
    path("webhooks/deliveries/", operations.Deliveries.as_view()),
    path("webhooks/deliveries/<uuid:delivery_id>/resend/", operations.DeliveryResend.as_view()),
    path("webhooks/<uuid:endpoint_id>/", operations.WebhookDetail.as_view()),
    path("webhooks/<uuid:endpoint_id>/test/", operations.WebhookTest.as_view()),
]
