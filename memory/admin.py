"""Curation by staff: shapes and dates; a person's text only behind a stated reason."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from memory import graph_admin as graph_admin  # its registrations
from memory import services
from memory.models import Extraction, Fingerprint, Memory, MemorySource, Work
from mira_site.admin import CuratedAdmin, CuratedInline
from mira_site.errors import RequestError


class SourceInline(CuratedInline):
    model = MemorySource
    private_fields = ("sentence", "span")


@admin.register(Memory)
class MemoryAdmin(CuratedAdmin):
    private_fields = ("text", "wing", "room", "metrics")
    list_display = (
        "short_id",
        "user",
        "memory_type",
        "private_length",
        "importance",
        "created_at",
        "happens_at",
        "expires_at",
        "archived_at",
    )
    list_filter = ("memory_type", ("archived_at", admin.EmptyFieldListFilter), "created_at")
    search_fields = ("=id", "=user__username", "=user__email", "=source_segment_id")
    date_hierarchy = "created_at"
    ordering = ("-created_at", "-id")
    inlines = (SourceInline,)
    actions = ("archive_chosen", "restore_chosen")

    @admin.action(description="Archive the chosen memories", permissions=["view"])
    def archive_chosen(self, request: HttpRequest, chosen: QuerySet[Memory]) -> None:
        rows = list(chosen.select_related("user"))
        for row in rows:
            services.archive(user=row.user, memory_id=row.pk, reason="staff")
        self.message_user(request, f"{len(rows)} archived; their owners can restore them.")

    @admin.action(description="Restore the chosen memories", permissions=["view"])
    def restore_chosen(self, request: HttpRequest, chosen: QuerySet[Memory]) -> None:
        restored, refused = 0, 0
        for row in chosen.select_related("user"):
            try:
                services.restore(user=row.user, memory_id=row.pk)
                restored += 1
            except RequestError:
                refused += 1
        self.message_user(request, f"{restored} restored.")
        if refused:
            self.message_user(
                request, f"{refused} left archived: a live one says the same.", messages.WARNING
            )


@admin.register(MemorySource)
class MemorySourceAdmin(CuratedAdmin):
    private_fields = ("sentence", "span")
    list_display = ("id", "user", "memory", "message_id", "segment_id", "said_at")
    list_select_related = ("user", "memory")
    search_fields = ("=id", "=memory__id", "=message_id", "=user__username")
    ordering = ("-said_at",)


@admin.register(Fingerprint)
class FingerprintAdmin(CuratedAdmin):
    """Counts alone: what a fingerprint says is the memory's text, and opens with the memory."""

    fields = ("id", "user", "memory", "fact_count", "author", "made_at")
    list_display = ("short_id", "user", "memory", "fact_count", "author", "made_at")
    list_select_related = ("user", "memory")
    list_filter = ("author",)
    search_fields = ("=id", "=memory__id", "=user__username")
    ordering = ("-made_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Fingerprint]:
        return super().get_queryset(request).defer("canonical", "sha256")


@admin.register(Extraction)
class ExtractionAdmin(CuratedAdmin):
    list_display = (
        "short_id",
        "user",
        "source_segment_id",
        "memory_count",
        "by_model",
        "finished_at",
    )
    list_filter = ("by_model", "finished_at")
    search_fields = ("=source_segment_id", "=user__username")
    ordering = ("-finished_at",)


@admin.register(Work)
class WorkAdmin(CuratedAdmin):
    list_display = (
        "short_id",
        "user",
        "kind",
        "subject",
        "status",
        "attempts",
        "next_attempt_at",
        "claimed_until",
        "finished_at",
        "error_code",
    )
    list_filter = ("status", "kind", "error_code")
    search_fields = ("=id", "=subject", "=user__username")
    ordering = ("next_attempt_at",)
    actions = ("try_again_now",)

    @admin.action(description="Try again now", permissions=["view"])
    def try_again_now(self, request: HttpRequest, chosen: QuerySet[Work]) -> None:
        rows = list(chosen.select_related("user"))
        count = sum(services.hasten(user=row.user, work_ids=[row.pk]) for row in rows)
        self.message_user(request, f"{count} brought back; they start within moments.")
