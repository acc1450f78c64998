"""Curation of the thread: shapes and states; what was said only after a reason."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from conversations import services
from conversations.models import (
    Attachment,
    CompactionBrief,
    ComposedContext,
    ContextSection,
    Message,
    Observation,
    Segment,
    SubcorticalRecord,
    SurfacedMemory,
    Thread,
    ToolCall,
    Turn,
)
from mira_site.admin import CuratedAdmin
from mira_site.errors import RequestError


@admin.register(Thread)
class ThreadAdmin(CuratedAdmin):
    list_display = ("short_id", "user", "created_at", "last_position")
    search_fields = ("user__username",)


@admin.register(Segment)
class SegmentAdmin(CuratedAdmin):
    list_display = (
        "short_id", "user", "status", "opened_at", "last_message_at", "complexity",
        "is_summary_by_model", "summary_stale_at", "attempts", "next_attempt_at", "error_code",
        "private_length",
    )  # fmt: skip
    list_filter = ("status", "is_summary_by_model")
    search_fields = ("user__username", "id")
    date_hierarchy = "opened_at"
    private_fields = ("title", "precis", "trace")
    actions = ("collapse_again",)

    @admin.action(description="Try the collapse again now", permissions=["view"])
    def collapse_again(self, request: HttpRequest, queryset: QuerySet[Segment]) -> None:
        for segment in queryset.filter(status=Segment.Status.COLLAPSING):
            services.collapse_again(user=segment.user, segment_id=segment.pk)
        self.message_user(request, "The segments that were left in a collapse are queued again.")


@admin.register(Turn)
class TurnAdmin(CuratedAdmin):
    list_display = (
        "short_id", "user", "status", "attempt", "created_at", "finished_at", "model",
        "input_tokens", "output_tokens", "cache_read_tokens", "error_code",
    )  # fmt: skip
    list_filter = ("status", "error_code")
    search_fields = ("user__username", "id")
    date_hierarchy = "created_at"
    actions = ("stop",)

    @admin.action(description="Stop", permissions=["view"])
    def stop(self, request: HttpRequest, queryset: QuerySet[Turn]) -> None:
        for turn in queryset.filter(status__in=Turn.OPEN):
            try:
                services.stop_turn(user=turn.user, turn_id=turn.pk)
            except RequestError as error:
                self.message_user(request, str(error), messages.ERROR)


@admin.register(Message)
class MessageAdmin(CuratedAdmin):
    list_display = (
        "short_id",
        "user",
        "role",
        "position",
        "created_at",
        "is_partial",
        "private_length",
    )
    list_filter = ("role", "is_partial")
    search_fields = ("user__username", "id")
    private_fields = ("content", "text")


@admin.register(Attachment)
class AttachmentAdmin(CuratedAdmin):
    """What files are, not what is in them: their bodies are in no page of staff."""

    list_display = (
        "short_id", "user", "message", "media_type", "size", "pages", "is_shown_whole",
        "forgotten_at", "created_at",
    )  # fmt: skip
    list_filter = ("media_type", "is_shown_whole")
    search_fields = ("user__username", "id")
    private_fields = ("name", "sha256")


@admin.register(ToolCall)
class ToolCallAdmin(CuratedAdmin):
    list_display = ("short_id", "user", "turn", "position", "name", "is_error", "called_at")
    list_filter = ("name", "is_error")
    search_fields = ("user__username", "id")
    private_fields = ("input", "result", "compact_result", "summary")


@admin.register(SurfacedMemory)
class SurfacedMemoryAdmin(CuratedAdmin):
    list_display = ("short_id", "user", "turn", "memory", "rank", "score")
    search_fields = ("user__username",)
    private_fields = ("why", "parts")


@admin.register(ComposedContext)
class ComposedContextAdmin(CuratedAdmin):
    """How large prompts were; what was in them is in their sections."""

    list_display = (
        "short_id", "user", "turn", "tokens", "counted_tokens", "history_tokens", "effort",
        "composed_at",
    )  # fmt: skip
    list_filter = ("effort",)
    search_fields = ("=id", "user__username", "=turn__id")
    date_hierarchy = "composed_at"
    private_fields = ("sections", "tools")


@admin.register(ContextSection)
class ContextSectionAdmin(CuratedAdmin):
    list_display = ("short_id", "user", "segment", "name", "tokens", "private_length")
    list_filter = ("name",)
    search_fields = ("=id", "user__username", "=segment__id")
    private_fields = ("text", "sha256")


@admin.register(SubcorticalRecord)
class SubcorticalRecordAdmin(CuratedAdmin):
    list_display = (
        "short_id", "user", "turn", "by", "reason", "complexity", "took_ms", "made_at",
    )  # fmt: skip
    list_filter = ("by", "complexity", "reason")
    search_fields = ("=id", "user__username", "=turn__id")
    date_hierarchy = "made_at"
    private_fields = ("phrases", "entities", "offered_ids", "kept_ids")


@admin.register(Observation)
class ObservationAdmin(CuratedAdmin):
    list_display = (
        "short_id", "user", "segment", "action", "severity", "turn_number", "expires_after_turn",
        "shown_count", "private_length", "created_at",
    )  # fmt: skip
    list_filter = ("action", "severity")
    search_fields = ("=id", "user__username", "=segment__id")
    date_hierarchy = "created_at"
    private_fields = ("failure", "guidance", "evidence_ids")


@admin.register(CompactionBrief)
class CompactionBriefAdmin(CuratedAdmin):
    list_display = (
        "short_id", "user", "segment", "count", "covered_to_position", "covered_to_at",
        "private_length", "updated_at",
    )  # fmt: skip
    search_fields = ("=id", "user__username", "=segment__id")
    private_fields = ("text",)
