"""Values that cross the border of this app."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.http import HttpRequest
from rest_framework.request import Request

from mira_site.accounts.constants import QUIET_MINUTES
from mira_site.accounts.languages import AS_WRITTEN
from mira_site.accounts.models import User


class UserRequest(Request):
    """An API request whose user is signed in, as behind IsAuthenticated."""

    user: User


class SignedInRequest(HttpRequest):
    """A page's request whose user is signed in, as behind login_required."""

    user: User


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """What the person chose; every one has a default.

    observer       the second pair of eyes looks at the talk every few turns
    quiet_minutes  without a message, after which a stretch of conversation becomes memory
    fixed_zone     the time zone stays as it was set, whatever the device says
    language       code of the one in which answers come; "" is that of the message
    """

    theme: str = "system"
    effort: str = "automatic"
    observer: bool = True
    quiet_minutes: int = QUIET_MINUTES
    fixed_zone: bool = False
    language: str = AS_WRITTEN


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonSettings(Preferences):
    """All settings of a person. `models`: by tier, the names they chose; others are the server's.

    `monthly_cap`: dollars; None is no cap.
    """

    monthly_cap: Decimal | None = None
    models: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A person as the API shows them to themselves."""

    id: UUID
    username: str
    name: str
    email: str
    timezone: str
    use_days: int
    created_at: datetime
    settings: PersonSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken:
    """An API token in clear: shown once, stored only as a hash."""

    token: str
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenOnFile:
    """An API token as its person sees it in a list; `start` is how it begins."""

    start: str
    name: str
    created_at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedInvitation:
    """An invitation's token in clear: shown once, stored only as a hash."""

    id: UUID
    token: str
