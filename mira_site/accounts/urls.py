"""Addresses of this app: pages, and operations under /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from mira_site.accounts import api as operations
from mira_site.accounts import views

pages: list[URLPattern | URLResolver] = [
    path("setup/<str:token>/", views.setup, name="setup"),
    path("invitation/<str:token>/", views.invitation, name="invitation"),
]
api: list[URLPattern | URLResolver] = [
    path("auth/token/", operations.TokenView.as_view(), name="auth_token"),
    path("me/", operations.MeView.as_view(), name="me"),
    path("usage/", operations.UsageView.as_view(), name="usage_api"),
]
