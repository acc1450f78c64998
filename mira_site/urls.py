"""Every address of the site."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

import conversations.urls
import memory.urls
import mira_site.accounts.urls
import mira_site.health
import mira_site.installed
import mira_site.staff
import mira_site.webhooks.urls

urlpatterns = [
    *conversations.urls.pages,
    *memory.urls.pages,
    *mira_site.accounts.urls.pages,
    *mira_site.webhooks.urls.pages,
    path("accounts/", include("allauth.account.urls")),
    *mira_site.staff.urlpatterns,
    path("admin/", admin.site.urls),
    *mira_site.health.urlpatterns,
    *mira_site.installed.urlpatterns,
    path(
        "api/v1/",
        include(
            [
                *mira_site.accounts.urls.api,
                *mira_site.webhooks.urls.api,
                *conversations.urls.api,
                *memory.urls.api,
            ]
        ),
    ),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="api_docs"),
]

handler404 = "mira_site.problems.page_not_found"
handler500 = "mira_site.problems.server_error"
