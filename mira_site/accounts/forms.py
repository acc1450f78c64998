"""Sign-up and set-up forms."""

from __future__ import annotations

from allauth.account.adapter import get_adapter
from allauth.account.forms import SignupForm
from allauth.core import context
from django import forms
from django.contrib.auth.password_validation import password_validators_help_text_html
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from mira_site.accounts import selectors, services
from mira_site.accounts.constants import INVITATION_SESSION_KEY
from mira_site.accounts.models import User
from mira_site.errors import PermissionRefused


class ZoneField(forms.CharField):
    """The browser's zone; the page's script fills it in. Without script it stays empty."""

    widget = forms.HiddenInput(attrs={"data-timezone": ""})

    def __init__(self) -> None:
        super().__init__(required=False, max_length=64)


class SignUpForm(SignupForm):
    """allauth's form, with the browser's zone, admitting whom SIGNUP admits."""

    timezone = ZoneField()

    def clean_email(self) -> str:
        email: str = super().clean_email()
        invitation = selectors.usable_invitation(_invitation_id(context.request))
        if invitation is not None and not invitation.is_for(email):
            raise forms.ValidationError("This invitation is for another e-mail address.")
        return email

    def try_save(self, request: HttpRequest) -> tuple[User | None, HttpResponse | None]:
        try:
            user, response = super().try_save(request)
        except PermissionRefused as refusal:  # it was used up since the page was shown
            page = render(
                request,
                "accounts/link_invalid.html",
                {"detail": str(refusal)},
                status=refusal.status,
            )
            return None, page
        return user, response

    @transaction.atomic
    def save(self, request: HttpRequest) -> User:
        user: User = super().save(request)
        services.admit(user=user, invitation_id=_invitation_id(request))
        request.session.pop(INVITATION_SESSION_KEY, None)
        return user


class SetupForm(forms.Form):
    """The first account."""

    username = forms.CharField(
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        widget=forms.TextInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    email = forms.EmailField(
        label="E-mail address", widget=forms.EmailInput(attrs={"autocomplete": "email"})
    )
    password = forms.CharField(
        strip=False,
        help_text=password_validators_help_text_html,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    timezone = ZoneField()

    def clean_username(self) -> str:
        return get_adapter().clean_username(self.cleaned_data["username"])  # type: ignore[no-any-return]

    def clean(self) -> None:
        said = self.cleaned_data
        if "password" in said:
            person = User(username=said.get("username", ""), email=said.get("email", ""))
            try:
                get_adapter().clean_password(said["password"], user=person)
            except forms.ValidationError as error:
                self.add_error("password", error)


def _invitation_id(request: HttpRequest) -> str | None:
    return request.session.get(INVITATION_SESSION_KEY)
