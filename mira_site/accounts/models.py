"""People: accounts, the days they used MIRA, invitations."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils.crypto import salted_hmac

from mira_site.owned import Owned


class User(AbstractUser):
    """An account. `preferences` holds what the person set on the settings page."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    timezone = models.CharField(
        max_length=64, default="UTC", help_text="IANA name of the person's zone."
    )
    preferences = models.JSONField(default=dict, blank=True)
    session_salt = models.CharField(
        max_length=32, blank=True, default="", editable=False, help_text="Anew ends all sessions."
    )

    class Meta:
        db_table = "accounts_users"

    def __str__(self) -> str:
        return self.username

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """Django's, which ends the sessions of an old password, and of an old salt."""
        by_password: str = super()._get_session_auth_hash(secret=secret)  # type: ignore[misc]
        if not self.session_salt:
            return by_password
        return salted_hmac(self.session_salt, by_password, algorithm="sha256").hexdigest()


class UseDay(Owned):
    """A local calendar day on which the person sent at least one message."""

    day_on = models.DateField()
    first_message_at = models.DateTimeField()
    message_count = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "accounts_use_days"
        ordering = ["day_on"]
        constraints = [models.UniqueConstraint(fields=["user", "day_on"], name="one_use_day_a_day")]

    def __str__(self) -> str:
        return f"{self.day_on}"


class TokenName(Owned):
    """What the person calls one of their API tokens. Knox keeps the token; this may outlive it."""

    digest = models.CharField(max_length=128, help_text="Primary key of knox.AuthToken.")
    name = models.CharField(max_length=60)

    class Meta:
        db_table = "accounts_token_names"
        constraints = [models.UniqueConstraint(fields=["digest"], name="one_name_a_token")]

    def __str__(self) -> str:
        return self.name


class InvitationQuerySet(models.QuerySet["Invitation"]):
    def usable(self, now: datetime) -> InvitationQuerySet:
        return self.filter(used_at__isnull=True, expires_at__gt=now)


class Invitation(models.Model):
    """Leave to open one account while SIGNUP is `invite`. Made by staff; it belongs to nobody."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    email = models.EmailField(blank=True, help_text="If given, only this address may use it.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, editable=False)
    used_by = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        null=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
    )

    objects = InvitationQuerySet.as_manager()

    class Meta:
        db_table = "accounts_invitations"
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.email or f"open invitation of {self.created_at:%Y-%m-%d}"

    def is_for(self, email: str) -> bool:
        return not self.email or self.email.casefold() == email.casefold()
