"""Upkeep: merges and conflicts of memories, background work, and what was forgotten."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models

from memory import wording
from memory.constants import MERGE_UNDO_DAYS
from memory.models.memories import Memory, MemoryRevision
from mira_site.owned import Owned


class Merge(Owned):
    """Several memories made one; undone within 30 days, or for good after."""

    result = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="merges")
    sources = models.ManyToManyField(Memory, through="MergeSource", related_name="merged_in")
    note = models.CharField(max_length=500, blank=True, default="")
    author = models.CharField(max_length=10, choices=MemoryRevision.Author)
    merged_at = models.DateTimeField()
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "memory_merges"

    def __str__(self) -> str:
        return f"merge into {self.result_id}"

    @property
    def undo_until(self) -> datetime:
        return self.merged_at + timedelta(days=MERGE_UNDO_DAYS)


class MergeSource(Owned):
    """One of the memories that a merge took in; archived, not lost."""

    merge = models.ForeignKey(Merge, on_delete=models.CASCADE, related_name="parts")
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="+")

    class Meta:
        db_table = "memory_merge_sources"
        constraints = [models.UniqueConstraint(fields=["merge", "memory"], name="once_in_a_merge")]

    def __str__(self) -> str:
        return f"{self.memory_id} in {self.merge_id}"


class Conflict(Owned):
    """Two memories that cannot both be true, and nobody could tell which. The person is asked."""

    class Status(models.TextChoices):
        OPEN = "open"
        RESOLVED = "resolved"
        DISMISSED = "dismissed"

    older = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="+")
    newer = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="+")
    reasoning = models.CharField(max_length=500, blank=True, default="")
    status = models.CharField(max_length=10, choices=Status, default=Status.OPEN)
    kept = models.CharField(
        max_length=5, blank=True, default="", help_text="older, newer or both, once settled."
    )
    created_at = models.DateTimeField()
    asked_at = models.DateTimeField(null=True, blank=True)
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "memory_conflicts"
        constraints = [
            models.UniqueConstraint(fields=["older", "newer"], name="one_conflict_a_pair")
        ]

    def __str__(self) -> str:
        return f"{self.older_id} or {self.newer_id}"


class Work(Owned):
    """Background work of the memory app: due until it is done, whatever goes wrong."""

    class Kind(models.TextChoices):
        INTEGRATION = "integration"
        FLOOR = "floor"
        ENTITY_MERGE = "entity_merge"
        RESCORE = "rescore"
        REEMBED = "reembed"

    class Status(models.TextChoices):
        DUE = "due"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed", "failed, due again"

    kind = models.CharField(max_length=14, choices=Kind)
    subject = models.CharField(
        max_length=60,
        help_text="What it is about: a segment's id, a use-day; not text of a person.",
    )
    status = models.CharField(max_length=10, choices=Status, default=Status.DUE)
    attempts = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    next_attempt_at = models.DateTimeField()
    claimed_until = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    error_code = models.CharField(max_length=40, blank=True, default="")

    class Meta:
        db_table = "memory_work"
        verbose_name_plural = "work"
        constraints = [
            models.UniqueConstraint(fields=["user", "kind", "subject"], name="one_work_a_subject")
        ]
        indexes = [models.Index(fields=["status", "next_attempt_at"], name="memory_work_due")]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject} ({self.status})"


class ForgetReceipt(Owned):
    """What a wish to forget touched: counts, never words."""

    requested_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    counts = models.JSONField(default=dict)

    class Meta:
        db_table = "memory_forget_receipts"

    def __str__(self) -> str:
        return f"receipt {self.short_id}"

    @property
    def lines(self) -> list[str]:
        """The counts in plain words."""
        return wording.counted(self.counts)
