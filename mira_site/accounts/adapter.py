"""allauth's hooks: who may sign up, and what a new account starts with."""

from __future__ import annotations

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.forms import ValidationError
from django.http import HttpRequest

from mira_site.accounts import selectors, services, zones
from mira_site.accounts.constants import INVITATION_SESSION_KEY, ZONE_COOKIE
from mira_site.accounts.models import User
from mira_site.accounts.throttles import client_address


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return selectors.may_sign_up(request.session.get(INVITATION_SESSION_KEY))

    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        claim = form.cleaned_data.get("timezone")
        user.timezone = zones.first_known(claim, request.COOKIES.get(ZONE_COOKIE))
        return super().save_user(request, user, form, commit)  # type: ignore[no-any-return]

    def clean_username(self, username: str, shallow: bool = False) -> str:
        if "@" in username:  # or it could be mistaken for somebody's e-mail address
            raise ValidationError("A username has no @ in it.")
        return super().clean_username(username, shallow)  # type: ignore[no-any-return]

    def set_password(self, user: User, password: str) -> None:
        """A password is changed or reset because somebody may know it; tokens it bought end too."""
        super().set_password(user, password)
        services.revoke_all_tokens(user=user)

    def get_client_ip(self, request: HttpRequest) -> str:
        return client_address(request)
