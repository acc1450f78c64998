"""Rows that belong to a person."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Self

from django.conf import settings
from django.db import models

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser


class OwnedQuerySet(models.QuerySet[Any]):
    """Every read of owned rows starts with `for_user`."""

    def for_user(self, user: AbstractBaseUser | uuid.UUID | str) -> Self:
        return self.filter(user_id=getattr(user, "pk", user))

    def with_id_prefix(self, digits: str) -> Self:
        """Rows whose id begins with these hex digits, of which a prompt shows the first eight.

        A range of the primary key: comparing uuids is leakproof, so that under row-level security
        PostgreSQL looks into the index, as it does not for a prefix of the id as text.
        """
        first, last = uuid.UUID(digits.ljust(32, "0")), uuid.UUID(digits.ljust(32, "f"))
        return self.filter(id__gte=first, id__lte=last)


class Owned(models.Model):
    """A row of one person. Its table gets EnableRowSecurity in the migration that makes it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    objects = OwnedQuerySet.as_manager()

    class Meta:
        abstract = True

    @property
    def short_id(self) -> str:
        """The first eight hex digits of the id: for logs, and for models to name a row by."""
        return self.id.hex[:8]
