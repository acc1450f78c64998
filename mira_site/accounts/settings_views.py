"""The settings page. Every action is a form that works without script."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from mira_site.accounts import selectors, services, settings_forms, zones
from mira_site.accounts.types import IssuedToken, SignedInRequest
from mira_site.errors import NotFound, RequestError
from mira_site.llm import client, keys, trial

FORMS: dict[str, type[forms.Form]] = {
    "you": settings_forms.YouForm,
    "looks": settings_forms.LooksForm,
    "thinking": settings_forms.ThinkingForm,
    "key": settings_forms.KeyForm,
    "tokens": settings_forms.TokenForm,
}


@sensitive_post_parameters("key")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def settings_page(request: SignedInRequest) -> HttpResponse:
    """All sections; a POST saves the one it names, and shows a new token this once."""
    if request.method != "POST":
        return _page(request)
    section = request.POST.get("section", "")
    if section not in FORMS:
        raise Http404("There is no such section.")
    form = _form(request, section, request.POST)
    if not form.is_valid():
        return _page(request, form, section=section, status=400)
    try:
        issued = _save(request, section, form)
    except RequestError as error:
        for name, says in (error.fields or {"": str(error)}).items():
            form.add_error(name if name in form.fields else None, says)
        return _page(request, form, section=section, status=error.status)
    if issued is not None:
        return _page(request, issued=issued, status=201)
    return _back(section)


@require_POST
@login_required
def key_test(request: SignedInRequest) -> HttpResponse:
    """One cheap call with the person's own key; what came of it, in words."""
    if keys.on_file(request.user.pk) is None:
        raise Http404("There is no key to test.")
    found = trial.of_own_key()
    (messages.success if found.went_well else messages.error)(request, found.says)
    return _back("key")


@require_POST
@login_required
def key_delete(request: SignedInRequest) -> HttpResponse:
    if keys.drop(user_id=request.user.pk):
        messages.success(request, "Your key is deleted.")
    return _back("key")


@require_POST
@login_required
def token_revoke(request: SignedInRequest, start: str) -> HttpResponse:
    try:
        services.revoke_token(user=request.user, start=start)
    except NotFound as error:
        raise Http404(str(error)) from error
    messages.success(request, "The token is revoked: what used it has to ask for another.")
    return _back("tokens")


@require_POST
@login_required
def sign_out_elsewhere(request: SignedInRequest) -> HttpResponse:
    user = services.end_sessions(user=request.user)
    update_session_auth_hash(request, user)
    messages.success(request, "You are signed in on this device only.")
    return _back("devices")


def _save(request: SignedInRequest, section: str, form: forms.Form) -> IssuedToken | None:
    """Do what the section's form says, and tell so; a token, where one was made."""
    user, said = request.user, form.cleaned_data
    if section == "tokens":
        return services.issue_token(user=user, name=said["name"])
    if section == "key":
        keys.keep(user_id=user.pk, key=said["key"])
        messages.success(request, "Your key is kept, encrypted. Try it with the button below.")
        return None
    if section == "you":
        services.update_profile(
            user=user,
            zone_name=said["timezone"],
            name=said["name"],
            chosen={name: said[name] for name in ("fixed_zone", "language")},
        )
    else:
        chosen = form.chosen() if isinstance(form, settings_forms.ThinkingForm) else said
        services.update_profile(user=user, chosen=chosen)
    messages.success(request, "Saved.")
    return None


def _form(request: SignedInRequest, section: str, said: Any = None) -> forms.Form:
    now = settings_forms.initial(request.user, selectors.settings_of(request.user))
    if section == "tokens":  # whose field of the same name is that of a token
        now = {}
    return FORMS[section](said, auto_id=f"{section}-%s", initial=now)


def _page(
    request: SignedInRequest,
    refused: forms.Form | None = None,
    *,
    section: str = "",
    issued: IssuedToken | None = None,
    status: int = 200,
) -> HttpResponse:
    shown = {name: _form(request, name) for name in FORMS}
    if refused is not None:
        shown[section] = refused
    context = {
        "forms": shown,
        "zones": zones.listed(),
        "key": keys.on_file(request.user.pk),
        "provider": client.provider_host(),
        "is_configured": client.is_configured(),
        "tokens": selectors.tokens(request.user),
        "issued": issued,
    }
    with timezone.override(selectors.zone(request.user)):
        return render(request, "accounts/settings.html", context, status=status)


def _back(section: str) -> HttpResponse:
    return redirect(f"{reverse('settings')}#{section}")
