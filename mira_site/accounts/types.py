"""Values that cross the border of this app."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.http import HttpRequest
from rest_framework.request import Request

from mira_site.accounts.models import User


class UserRequest(Request):
    """An API request whose user is signed in, as behind IsAuthenticated."""

    user: User


class SignedInRequest(HttpRequest):
    """A page's request whose user is signed in, as behind login_required."""

    user: User


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """What the person chose; every one has a default."""

    theme: str = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A person as the API shows them to themselves."""

    id: UUID
    username: str
    email: str
    timezone: str
    use_days: int
    created_at: datetime
    settings: Preferences


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken:
    """An API token in clear: shown once, stored only as a hash."""

    token: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedInvitation:
    """An invitation's token in clear: shown once, stored only as a hash."""

    id: UUID
    token: str
