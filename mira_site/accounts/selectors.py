"""Reads about accounts."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core import signing
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from knox.crypto import hash_token
from knox.models import AuthToken

from mira_site.accounts import languages, zones
from mira_site.accounts.constants import (
    EFFORTS,
    QUIET_MINUTES_MAX,
    QUIET_MINUTES_MIN,
    SETUP_LINK_MAX_AGE,
    SETUP_SALT,
    THEMES,
)
from mira_site.accounts.models import Invitation, TokenName, UseDay, User
from mira_site.accounts.quiet import quiet_time as quiet_time
from mira_site.accounts.types import PersonSettings, Preferences, Profile, TokenOnFile
from mira_site.errors import Conflict, NotFound
from mira_site.llm import choices
from mira_site.llm.types import Tier


def user(user_id: UUID | str) -> User:
    """The account with this id. Raises NotFound."""
    found = User.objects.filter(pk=user_id).first()
    if found is None:
        raise NotFound("There is no such account.")
    return found


def user_named(name: str) -> User:
    """The account with this username or, if that fits one account only, e-mail address.

    Raises NotFound.
    """
    found = User.objects.filter(username=name).first()
    if found is None:
        by_address = list(User.objects.filter(email__iexact=name)[:2])
        found = by_address[0] if len(by_address) == 1 else None
    if found is None:
        raise NotFound("There is no account with that username or e-mail address.")
    return found


def zone(user: User) -> ZoneInfo:
    """The person's own zone; UTC if what is stored is no zone."""
    return zones.zone(user.timezone)


def local_now(user: User, at: datetime) -> datetime:
    """The moment `at` on the person's own clock."""
    return at.astimezone(zone(user))


def use_days(user: User) -> int:
    """On how many of their days the person has talked with MIRA so far."""
    return UseDay.objects.for_user(user).count()


def preferences(user: User) -> Preferences:
    """What is stored on the account; what makes no sense is its default."""
    stored, default = user.preferences, Preferences()
    theme, effort, language = (stored.get(name) for name in ("theme", "effort", "language"))
    quiet = stored.get("quiet_minutes")
    is_quiet = type(quiet) is int and QUIET_MINUTES_MIN <= quiet <= QUIET_MINUTES_MAX
    return Preferences(
        theme=theme if theme in THEMES else default.theme,
        effort=effort if effort in EFFORTS else default.effort,
        observer=stored.get("observer") is not False,
        quiet_minutes=quiet if is_quiet else default.quiet_minutes,
        fixed_zone=stored.get("fixed_zone") is True,
        language=language if language in languages.LANGUAGES else default.language,
    )


def language(user: User) -> str:
    """English name of the language chosen for answers; "" where none is."""
    return languages.english_name(preferences(user).language)


def settings_of(user: User) -> PersonSettings:
    """Everything the person may set, as it is now. Runs in their scope."""
    about_models = choices.of(user.pk)
    return PersonSettings(
        **asdict(preferences(user)),
        monthly_cap=about_models.monthly_cap if about_models else None,
        models={
            tier.value: model
            for tier in Tier
            if (model := choices.model_for(tier, about_models)) != choices.default_model(tier)
        },
    )


def profile(user: User) -> Profile:
    return Profile(
        id=user.pk,
        username=user.username,
        name=user.first_name,
        email=user.email,
        timezone=zone(user).key,
        use_days=use_days(user),
        created_at=user.date_joined,
        settings=settings_of(user),
    )


def user_of_token(token: str) -> User | None:
    """Whose API token this is; nobody's if it is unknown, expired or of a closed account."""
    good = Q(expiry__isnull=True) | Q(expiry__gt=timezone.now())
    rows = AuthToken.objects.filter(good, digest=hash_token(token), user__is_active=True)
    row = rows.select_related("user").first()
    owner: User | None = row.user if row is not None else None
    return owner


def tokens(user: User) -> list[TokenOnFile]:
    """The person's API tokens that are still good, newest first."""
    names = dict(TokenName.objects.for_user(user).values_list("digest", "name"))
    good = Q(expiry__isnull=True) | Q(expiry__gt=timezone.now())
    return [
        TokenOnFile(
            start=row.token_key,
            name=names.get(row.digest, ""),
            created_at=row.created,
            expires_at=row.expiry,
        )
        for row in AuthToken.objects.filter(good, user=user).order_by("-created")
    ]


# --- The first account -----------------------------------------------------------------------
def setup_link_path() -> str | None:
    """The one-time address that makes the first account, or None once there is one."""
    if User.objects.exists():
        return None
    return reverse("setup", args=[signing.dumps("setup", salt=SETUP_SALT)])


def check_setup_token(token: str) -> None:
    """Raises Conflict once there is an account, NotFound if the link is not good."""
    if User.objects.exists():
        raise Conflict("The first account has been made, so this link no longer works. Sign in.")
    try:
        signing.loads(token, salt=SETUP_SALT, max_age=SETUP_LINK_MAX_AGE)
    except signing.BadSignature:
        raise NotFound(
            "This set-up link is not good, or older than a day. Start the server again: it "
            "prints a new one."
        ) from None


# --- Invitations -----------------------------------------------------------------------------
def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def invitation_of_token(token: str) -> Invitation:
    """The usable invitation behind a link. Raises NotFound."""
    found = Invitation.objects.usable(timezone.now()).filter(token_hash=token_hash(token)).first()
    if found is None:
        raise NotFound("This invitation was used, withdrawn or has run out. Ask for a new one.")
    return found


def usable_invitation(invitation_id: UUID | str | None) -> Invitation | None:
    if invitation_id is None:
        return None
    return Invitation.objects.usable(timezone.now()).filter(pk=invitation_id).first()


def may_sign_up(invitation_id: UUID | str | None) -> bool:
    """Whether the sign-up page is open to a visitor who came with this invitation, or none.

    The first account is made by the set-up link alone, or a stranger could be first.
    """
    if settings.SIGNUP == "closed" or not User.objects.exists():
        return False
    return settings.SIGNUP == "open" or usable_invitation(invitation_id) is not None
