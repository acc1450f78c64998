"""The page where a person manages webhooks. Every action is a form that works without script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from mira_site.accounts import selectors as accounts
from mira_site.accounts.types import SignedInRequest
from mira_site.errors import NotFound, RequestError
from mira_site.webhooks import selectors, services
from mira_site.webhooks.forms import EVENT_CHOICES, EndpointForm
from mira_site.webhooks.models import Delivery

SHOWN = 20  # deliveries of each list on the page; the API has all
EVENT_WORDS = dict(EVENT_CHOICES)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def webhooks(request: SignedInRequest) -> HttpResponse:
    """Endpoints and their latest deliveries; a POST makes an endpoint and shows its secret."""
    form = EndpointForm(request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return _page(request, form, status=400 if form.is_bound else 200)
    said = form.cleaned_data
    try:
        made = services.create(user=request.user, url=said["url"], events=said["events"])
    except RequestError as error:
        form.refuse(error.fields, otherwise=str(error))
        return _page(request, form, status=error.status)
    return _page(request, EndpointForm(), new=made, status=201)


@require_POST
@login_required
def switch(request: SignedInRequest, endpoint_id: UUID) -> HttpResponse:
    is_active = request.POST.get("on") == "yes"

    def change() -> str:
        services.change(user=request.user, endpoint_id=endpoint_id, is_active=is_active)
        return "Switched on." if is_active else "Switched off. What waits is kept."

    return _do(request, change)


@require_POST
@login_required
def delete(request: SignedInRequest, endpoint_id: UUID) -> HttpResponse:
    def remove() -> str:
        services.delete(user=request.user, endpoint_id=endpoint_id)
        return "Deleted."

    return _do(request, remove)


@require_POST
@login_required
def test(request: SignedInRequest, endpoint_id: UUID) -> HttpResponse:
    def send() -> str:
        services.send_test(user=request.user, endpoint_id=endpoint_id)
        return "A test event is on its way. Load the page again to see what came of it."

    return _do(request, send)


@require_POST
@login_required
def resend(request: SignedInRequest, delivery_id: UUID) -> HttpResponse:
    def again() -> str:
        services.resend(user=request.user, delivery_id=delivery_id)
        return "It is sent again."

    return _do(request, again)


def _page(
    request: SignedInRequest,
    form: EndpointForm,
    *,
    new: services.NewEndpoint | None = None,
    status: int = 200,
) -> HttpResponse:
    now = timezone.now()
    rows = selectors.deliveries(request.user).select_related("endpoint")
    context: dict[str, Any] = {
        "form": form,
        "new": new,
        "endpoints": [
            (row, row.breaker.state(now), [EVENT_WORDS[event] for event in row.events])
            for row in selectors.endpoints(request.user)
        ],
        "dead": rows.filter(status=Delivery.Status.DEAD)[:SHOWN],
        "deliveries": rows.exclude(status=Delivery.Status.DEAD)[:SHOWN],
    }
    with timezone.override(accounts.zone(request.user)):
        return render(request, "webhooks/webhooks.html", context, status=status)


def _do(request: SignedInRequest, act: Callable[[], str]) -> HttpResponse:
    """Do it, say what happened, and go back to the page."""
    try:
        messages.success(request, act())
    except NotFound as error:
        raise Http404(str(error)) from error
    except RequestError as error:
        messages.error(request, str(error))
    return redirect("webhooks")
