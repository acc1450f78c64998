"""The site's addresses, built anew: the admin's follow what is registered at that moment."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

import mira_site.urls

urlpatterns = [
    path("admin/", admin.site.urls),
    *(entry for entry in mira_site.urls.urlpatterns if str(entry.pattern) != "admin/"),
]
