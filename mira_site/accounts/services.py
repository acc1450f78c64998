"""Writes about accounts: who gets one, their tokens, their days and choices."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from datetime import datetime
from decimal import Decimal
from typing import cast
from uuid import UUID

import structlog
from allauth.account.models import EmailAddress
from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Subquery
from django.utils import timezone
from knox.models import AuthToken

from mira_site.accounts import selectors, zones
from mira_site.accounts.constants import (
    INVITATION_MAX_AGE,
    INVITATION_TOKEN_BYTES,
    SESSION_SALT_BYTES,
    SETUP_LOCK,
)
from mira_site.accounts.models import Invitation, TokenName, UseDay, User
from mira_site.accounts.types import IssuedInvitation, IssuedToken
from mira_site.errors import BadRequest, NotFound, PermissionRefused
from mira_site.llm import budget, choices

log = structlog.get_logger(__name__)


# --- Accounts --------------------------------------------------------------------------------
@transaction.atomic
def create_first_account(
    *, token: str, username: str, email: str, password: str, zone_name: str = "UTC"
) -> User:
    """Make the account of whoever set MIRA up: staff and superuser.

    Raises Conflict if there is an account by now, NotFound if the link is not good.
    """
    with connection.cursor() as cursor:
        # There is no row to lock yet. Of two at once, the second sees the first one's account.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SETUP_LOCK])
    selectors.check_setup_token(token)
    user = User.objects.create_superuser(
        username, email, password, timezone=zones.first_known(zone_name)
    )
    EmailAddress.objects.create(user=user, email=user.email, primary=True, verified=False)
    log.info("account.created", account=str(user.pk), by="setup")
    return user


@transaction.atomic
def admit(*, user: User, invitation_id: UUID | str | None) -> None:
    """Let a new account in, or refuse it. Call it in the transaction that made the account.

    Uses the invitation up. Raises PermissionRefused, which undoes the account.
    """
    if settings.SIGNUP == "closed":
        raise PermissionRefused("Sign-up is closed here.")
    usable = Invitation.objects.usable(timezone.now()).select_for_update()
    invitation = usable.filter(pk=invitation_id).first() if invitation_id else None
    if invitation is not None and invitation.is_for(user.email):
        invitation.used_at, invitation.used_by = timezone.now(), user
        invitation.save(update_fields=["used_at", "used_by"])
    elif settings.SIGNUP != "open":
        raise PermissionRefused(
            "This invitation was used, has run out or is for another e-mail address. "
            "Ask for a new one."
        )
    log.info("account.created", account=str(user.pk), by="sign_up")


def invite(*, by: User, email: str = "", expires_at: datetime | None = None) -> IssuedInvitation:
    """Leave for one person to open an account; with `email`, for that address only."""
    token = secrets.token_urlsafe(INVITATION_TOKEN_BYTES)
    invitation = Invitation.objects.create(
        token_hash=selectors.token_hash(token),
        email=email,
        created_by=by,
        expires_at=expires_at or timezone.now() + INVITATION_MAX_AGE,
    )
    log.info("invitation.created", invitation=str(invitation.pk))
    return IssuedInvitation(id=invitation.pk, token=token)


@transaction.atomic
def set_access(*, user: User, is_active: bool, is_staff: bool, is_superuser: bool) -> None:
    """Open or close an account, and say whether it curates. A closed one's tokens end."""
    User.objects.filter(pk=user.pk).update(
        is_active=is_active, is_staff=is_staff, is_superuser=is_superuser
    )
    if not is_active:
        AuthToken.objects.filter(user=user).delete()
    log.warning(
        "account.access_changed",
        account=str(user.pk),
        is_active=is_active,
        is_staff=is_staff,
        is_superuser=is_superuser,
    )


# --- API tokens ------------------------------------------------------------------------------
@transaction.atomic
def issue_token(*, user: User, name: str = "") -> IssuedToken:
    """A new API token; the account's other tokens stay good. With a name: in the user's scope."""
    row, token = AuthToken.objects.create(user)
    if name:
        TokenName.objects.create(user=user, digest=row.digest, name=name)
    log.info("token.issued", account=str(user.pk))
    return IssuedToken(token=token, expires_at=row.expiry)


def revoke_tokens(*, digests: Collection[str]) -> int:
    """End the API tokens with these digests; returns how many there were."""
    count: int
    count, _ = AuthToken.objects.filter(digest__in=digests).delete()
    log.info("token.revoked", tokens=count)
    return count


@transaction.atomic
def revoke_token(*, user: User, start: str) -> None:
    """End the person's token that begins like this. Raises NotFound."""
    rows = AuthToken.objects.filter(user=user, token_key=start)
    digests = list(rows.values_list("digest", flat=True))
    if not digests:
        raise NotFound("There is no such token.")
    revoke_tokens(digests=digests)
    TokenName.objects.for_user(user).filter(digest__in=digests).delete()


def revoke_all_tokens(*, user: User) -> int:
    """End every API token of an account, as after a change of its password."""
    return revoke_tokens(
        digests=list(AuthToken.objects.filter(user=user).values_list("digest", flat=True))
    )


# --- Days and choices ------------------------------------------------------------------------
def record_use(*, user: User, at: datetime) -> bool:
    """Count a message of the person's, sent at `at`, to their day; True if it begins a new one.

    Their days only go forward: a message on a day they have already left (they flew west, or
    changed their zone) counts to their latest day.
    """
    if _counted(user, at):  # as nearly always
        return False
    with transaction.atomic():
        clock = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if _counted(clock, at):
            return False
        day_on = selectors.local_now(clock, at).date()
        UseDay.objects.create(user=clock, day_on=day_on, first_message_at=at, message_count=1)
    return True


def _counted(user: User, at: datetime) -> bool:
    """Count a message to the latest day, unless it is of a later one."""
    days = UseDay.objects.for_user(user)
    latest = days.order_by("-day_on").values("pk")[:1]
    reached = days.filter(pk=Subquery(latest), day_on__gte=selectors.local_now(user, at).date())
    return bool(reached.update(message_count=F("message_count") + 1))


@transaction.atomic
def update_profile(
    *,
    user: User,
    zone_name: str | None = None,
    name: str | None = None,
    chosen: Mapping[str, object] | None = None,
) -> User:
    """Change what is given: the zone (an IANA name), what the person is called, single settings.

    `chosen` holds values of PersonSettings by name, checked already but for what the server
    allows. Raises BadRequest that names the field, and changes nothing then.
    """
    if zone_name is not None and not zones.is_known(zone_name):
        raise BadRequest(
            "There is no such time zone. Use an IANA name such as Europe/Vienna.",
            fields={"timezone": "Use an IANA name such as Europe/Vienna."},
        )
    row = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    given = dict(chosen or {})
    if "monthly_cap" in given:
        budget.set_cap(user_id=row.pk, dollars=cast("Decimal | None", given.pop("monthly_cap")))
    if "models" in given:
        choices.choose(user_id=row.pk, models=cast("Mapping[str, str]", given.pop("models")))
    row.timezone = zone_name or row.timezone
    row.first_name = row.first_name if name is None else name
    row.preferences = {**row.preferences, **given}
    row.save(update_fields=["timezone", "first_name", "preferences"])
    return row


# --- Devices -----------------------------------------------------------------------------------
def end_sessions(*, user: User) -> User:
    """End every session of the account; the caller keeps their own by Django's
    `update_session_auth_hash` with the user returned.
    """
    user.session_salt = secrets.token_hex(SESSION_SALT_BYTES)
    user.save(update_fields=["session_salt"])
    log.info("account.sessions_ended", account=str(user.pk))
    return user
