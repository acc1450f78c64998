"""Which memories changed lately: what a process that keeps some of their columns reads again."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models

from mira_site.owned import Owned


class TransactionId(models.Field):
    """PostgreSQL's own number of a transaction (xid8), which never comes again."""

    def db_type(self, connection: Any) -> str:
        return "xid8"


class MemoryChange(Owned):
    """That a memory was stored, deleted, or changed in what recall searches by.

    Written by triggers in the transaction that changes it, whoever does, and by nothing else; see
    memory/index.py. Its memory may be gone. The rows go after a day.
    """

    # Deleting a person deletes their memories, and that writes rows here while Django is at it:
    # so the database itself lets these go with the person (migration 0012).
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    memory_id = models.UUIDField()
    transaction = TransactionId()
    at = models.DateTimeField()

    class Meta:
        db_table = "memory_changes"
        indexes = [models.Index(fields=["user", "transaction"], name="memory_change_transaction")]

    def __str__(self) -> str:
        return f"change of {self.memory_id}"
