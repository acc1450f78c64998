"""The chat page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from conversations import selectors
from mira_site.accounts.types import SignedInRequest


@login_required
@never_cache
def chat(request: SignedInRequest) -> HttpResponse:
    return render(
        request, "conversations/chat.html", {"chat_state": selectors.chat_state(request.user)}
    )
