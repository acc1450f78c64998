"""Addresses of this app: pages, and operations under /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from mira_site.accounts import api as operations
from mira_site.accounts import settings_views, usage_views, views

pages: list[URLPattern | URLResolver] = [
    path("setup/<str:token>/", views.setup, name="setup"),
    path("invitation/<str:token>/", views.invitation, name="invitation"),
    path("settings/", settings_views.settings_page, name="settings"),
    path("settings/key/test/", settings_views.key_test, name="key_test"),
    path("settings/key/delete/", settings_views.key_delete, name="key_delete"),
    path("settings/tokens/<str:start>/revoke/", settings_views.token_revoke, name="token_revoke"),
    path("settings/devices/", settings_views.sign_out_elsewhere, name="sign_out_elsewhere"),
    path("settings/usage/", usage_views.usage_page, name="usage"),
    path("settings/usage/calls.csv", usage_views.usage_csv, name="usage_csv"),
]
api: list[URLPattern | URLResolver] = [
    path("auth/token/", operations.TokenView.as_view(), name="auth_token"),
    path("me/", operations.MeView.as_view(), name="me"),
    path("usage/", operations.UsageView.as_view(), name="usage_api"),
]
