"""Pages where a person reads, corrects and deletes what is remembered.

Every action is a form that works without script; htmx asks for the same addresses and gets the one
row back.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from memory import (
    dates,
    graph_selectors,
    graph_views,
    pages,
    paging,
    selectors,
    services,
    upkeep_selectors,
)
from memory.forms import FilterForm, MemoryForm
from memory.models import Memory
from memory.past import span
from mira_site.accounts import selectors as accounts
from mira_site.accounts.types import SignedInRequest
from mira_site.errors import DependencyError, NotFound, RequestError


@require_GET
@login_required
def memories(request: SignedInRequest) -> HttpResponse:
    """The list, newest first, or what a search finds, best first."""
    form = FilterForm(request.GET, auto_id="filter-%s", label_suffix="")
    asked = form.asked()
    zone = accounts.zone(request.user)
    try:
        about = graph_selectors.entity(request.user, asked["entity"]) if asked["entity"] else None
    except NotFound:
        about = None
    found = selectors.memories(
        request.user,
        q=asked["q"],
        state=asked["state"],
        memory_type=asked["kind"] or None,
        entity=about.id if about else None,
        since=dates.start_of(asked["since"], zone) if asked["since"] else None,
        until=dates.end_of(asked["until"], zone) if asked["until"] else None,
    )
    page = paging.page(found, after_row="" if asked["q"] else asked["after"])
    narrowing = {name: asked[name] for name in ("kind", "since", "until", "entity") if asked[name]}
    state = {"state": asked["state"]} if asked["state"] != "active" else {}
    kept = {**state, **narrowing, **({"q": asked["q"]} if asked["q"] else {})}
    return pages.page(
        request,
        "memory/memories.html",
        {
            "page": page,
            "form": form,
            "q": asked["q"],
            "state": asked["state"],
            "about": about,
            "is_narrowed": bool(narrowing),
            "kept_query": urlencode({k: v for k, v in kept.items() if k != "state"}),
            "older_query": urlencode({**kept, "after": page.older}) if page.older else "",
            "is_first": not asked["after"],
        },
    )


@require_GET
@login_required
def memory(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """One memory and every message it rests on."""
    found = _found(request, memory_id)
    return _row(request, found) if pages.is_htmx(request) else _page(request, found)


@require_http_methods(["GET", "POST"])
@login_required
def edit(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    found = _found(request, memory_id)
    with timezone.override(accounts.zone(request.user)):
        form = MemoryForm.of(found, request.POST if request.method == "POST" else None)
        if form.is_bound and form.is_valid():
            try:
                services.edit(user=request.user, memory_id=memory_id, **form.changes())
            except RequestError as error:
                form.refuse(error)
            except DependencyError as error:
                form.add_error("text", str(error))
            else:
                return _done(request, memory_id, "Changed.")
    template = "memory/partials/_memory_form.html" if pages.is_htmx(request) else "memory/edit.html"
    return _render(request, template, {"memory": found, "form": form})


@require_POST
@login_required
def archive(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    _found(request, memory_id)
    services.archive(user=request.user, memory_id=memory_id, reason="by hand")
    return _done(request, memory_id, "Archived. It will not come up until you restore it.")


@require_POST
@login_required
def restore(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    found = _found(request, memory_id)
    try:
        services.restore(user=request.user, memory_id=memory_id)
    except RequestError as error:
        return (
            _row(request, found, str(error))
            if pages.is_htmx(request)
            else _page(request, found, str(error))
        )
    return _done(request, memory_id, "Restored.")


@require_http_methods(["GET", "POST"])
@login_required
def forget(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Ask once more, then delete for good."""
    found = _found(request, memory_id)
    if request.method != "POST":
        template = (
            "memory/partials/_forget.html" if pages.is_htmx(request) else "memory/forget.html"
        )
        return _render(request, template, {"memory": found})
    receipt = services.forget(user=request.user, memory_id=memory_id)
    if pages.is_htmx(request):
        return _render(request, "memory/partials/_gone.html", {"receipt": receipt})
    messages.success(request, "Forgotten. This is the receipt.")
    return redirect("memory_forgotten")


def _found(request: SignedInRequest, memory_id: UUID) -> Memory:
    try:
        return selectors.memory(request.user, memory_id)
    except NotFound as error:
        raise Http404(str(error)) from error


def _done(request: SignedInRequest, memory_id: UUID, said: str) -> HttpResponse:
    if pages.is_htmx(request):
        return _row(request, selectors.memory(request.user, memory_id), said)
    messages.success(request, said)
    return redirect("memory", memory_id)


def _row(request: SignedInRequest, found: Memory, said: str = "") -> HttpResponse:
    return _render(
        request, "memory/partials/_memory_row.html", {"memory": found, "row_notice": said}
    )


def _page(request: SignedInRequest, found: Memory, said: str = "") -> HttpResponse:
    return pages.page(
        request,
        "memory/memory.html",
        {
            "memory": found,
            "row_notice": said,
            "history": upkeep_selectors.history(request.user, found),
            "validity": span(found.valid_from, found.valid_until, accounts.zone(request.user)),
            **graph_views.graph_context(request.user, found.id),
        },
    )


def _render(request: SignedInRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    return (pages.piece if pages.is_htmx(request) else pages.page)(request, template, context)
