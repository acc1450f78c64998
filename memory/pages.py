"""How the memory pages are rendered: in the person's time zone, with what waits for a look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from memory import upkeep_selectors
from mira_site.accounts import selectors as accounts
from mira_site.accounts.types import SignedInRequest


def is_htmx(request: SignedInRequest) -> bool:
    return request.headers.get("HX-Request") == "true"


def page(
    request: SignedInRequest, template: str, context: Mapping[str, Any], *, status: int = 200
) -> HttpResponse:
    """A whole page, with the navigation within the memories."""
    waiting = upkeep_selectors.waiting(request.user, now=timezone.now())
    return piece(request, template, {**context, "waiting": waiting}, status=status)


def piece(
    request: SignedInRequest, template: str, context: Mapping[str, Any], *, status: int = 200
) -> HttpResponse:
    """A part of a page, for htmx."""
    with timezone.override(accounts.zone(request.user)):
        response = render(request, template, {**context, "now": timezone.now()}, status=status)
    response.headers["Vary"] = "HX-Request"
    return response
