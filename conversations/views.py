"""The chat page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from conversations import paging, selectors
from mira_site.accounts.types import SignedInRequest


@login_required
@never_cache
def chat(request: SignedInRequest) -> HttpResponse:
    state = selectors.chat_state(request.user)
    if "at" not in request.GET:
        state["page"] = paging.newest(selectors.messages(request.user))
    return render(request, "conversations/chat.html", {"chat_state": state})
