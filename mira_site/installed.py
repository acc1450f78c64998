"""MIRA as an installed app: what a device keeps, so that it can say that MIRA cannot be reached."""

from __future__ import annotations

import hashlib
import json

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import URLPattern, path, reverse
from django.views.decorators.cache import cache_control, never_cache

# What the offline page looks like. Nothing of a person is among it.
KEPT = (
    "css/fonts.css",
    "css/tokens.css",
    "css/base.css",
    "css/account.css",
    "js/boot.js",
    "img/favicon.svg",
    "vendor/literata-5.3.0/literata-latin-wght-normal.woff2",
)


@never_cache
def service_worker(request: HttpRequest) -> HttpResponse:
    """From the root, because a worker serves only what lies beside or below it."""
    page = reverse("offline")
    kept = [page, *(static(name) for name in KEPT)]
    version = hashlib.sha256(" ".join(kept).encode()).hexdigest()[:12]
    worker = json.dumps({"cache": f"mira-offline-{version}", "page": page, "kept": kept})
    return render(request, "service-worker.js", {"worker": worker}, content_type="text/javascript")


@cache_control(public=True, max_age=0)
def offline(request: HttpRequest) -> HttpResponse:
    """Shown by the worker while the server is away; the same for everybody."""
    return render(request, "offline.html")


urlpatterns: list[URLPattern] = [
    path("service-worker.js", service_worker, name="service_worker"),
    path("offline/", offline, name="offline"),
]
