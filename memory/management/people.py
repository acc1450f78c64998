"""Whom a command is about."""

from __future__ import annotations

from django.core.management.base import CommandError

from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User
from mira_site.errors import MiraError


def chosen(name: str | None) -> list[User]:
    """The one with this name; without a name everybody, the oldest account first."""
    if not name:
        return list(User.objects.filter(is_active=True).order_by("date_joined"))
    try:
        return [accounts.user_named(name)]
    except MiraError as error:
        raise CommandError(str(error)) from error
