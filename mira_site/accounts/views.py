"""Pages: the first account, and coming with an invitation."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from mira_site.accounts import selectors, services, zones
from mira_site.accounts.constants import INVITATION_SESSION_KEY, ZONE_COOKIE
from mira_site.accounts.forms import SetupForm
from mira_site.errors import MiraError, RequestError


@sensitive_post_parameters()
@never_cache
def setup(request: HttpRequest, token: str) -> HttpResponse:
    """Make the first account, sign it in, and go to the chat."""
    form = SetupForm(request.POST or None)
    try:
        selectors.check_setup_token(token)
        if request.method != "POST" or not form.is_valid():
            return render(request, "accounts/setup.html", {"form": form})
        said = form.cleaned_data
        user = services.create_first_account(
            token=token,
            username=said["username"],
            email=said["email"],
            password=said["password"],
            zone_name=zones.first_known(said["timezone"], request.COOKIES.get(ZONE_COOKIE)),
        )
    except RequestError as error:
        return _link_invalid(request, error)
    login(request, user)
    return redirect("chat")


@never_cache
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Keep the invitation in mind and go to sign-up. Opening the link does not use it up."""
    if request.user.is_authenticated:
        return redirect("chat")
    try:
        found = selectors.invitation_of_token(token)
    except RequestError as error:
        return _link_invalid(request, error)
    request.session[INVITATION_SESSION_KEY] = str(found.pk)
    query = f"?{urlencode({'email': found.email})}" if found.email else ""
    return redirect(reverse("account_signup") + query)


def _link_invalid(request: HttpRequest, error: MiraError) -> HttpResponse:
    return render(
        request, "accounts/link_invalid.html", {"detail": str(error)}, status=error.status
    )
