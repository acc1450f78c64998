"""Curation of entities, links and proposals by staff; names and reasons only behind a reason."""

from __future__ import annotations

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from memory import entities
from memory.models import Entity, EntityMergeProposal, MemoryEntity, MemoryLink
from mira_site.admin import CuratedAdmin, CuratedInline
from mira_site.errors import RequestError


class MentionInline(CuratedInline):
    model = MemoryEntity
    fk_name = "entity"


@admin.register(Entity)
class EntityAdmin(CuratedAdmin):
    private_fields = ("name", "normalised")
    list_display = (
        "short_id",
        "user",
        "entity_type",
        "private_length",
        "canonical",
        "merged_by",
        "created_at",
        "archived_at",
    )
    list_filter = (
        "entity_type",
        ("canonical", admin.EmptyFieldListFilter),
        ("archived_at", admin.EmptyFieldListFilter),
        "merged_by",
    )
    search_fields = ("=id", "=canonical__id", "=user__username", "=user__email")
    ordering = ("-created_at", "-id")
    inlines = (MentionInline,)
    actions = ("merge_chosen", "unmerge_chosen")

    @admin.action(
        description="Merge the chosen, of one person, into the oldest", permissions=["view"]
    )
    def merge_chosen(self, request: HttpRequest, chosen: QuerySet[Entity]) -> None:
        rows = list(chosen.select_related("user").order_by("created_at", "id"))
        if len(rows) < 2 or len({row.user_id for row in rows}) != 1:
            self.message_user(
                request, "Choose two or more entities of one person.", messages.WARNING
            )
            return
        try:
            merged = entities.merge(
                user=rows[0].user,
                ids=[row.id for row in rows],
                into=rows[0].id,
                at=timezone.now(),
                by=Entity.By.STAFF,
            )
        except RequestError as error:
            self.message_user(request, str(error), messages.WARNING)
            return
        self.message_user(request, f"{len(merged.moved)} merged; it can be undone.")

    @admin.action(
        description="Separate the chosen from what they were merged into", permissions=["view"]
    )
    def unmerge_chosen(self, request: HttpRequest, chosen: QuerySet[Entity]) -> None:
        rows = list(chosen.select_related("user").filter(merged_into__isnull=False))
        for row in rows:
            entities.unmerge(user=row.user, entity_id=row.id, at=timezone.now(), by=Entity.By.STAFF)
        self.message_user(request, f"{len(rows)} separated.")


@admin.register(EntityMergeProposal)
class EntityMergeProposalAdmin(CuratedAdmin):
    list_display = (
        "short_id",
        "user",
        "first",
        "second",
        "similarity",
        "reason",
        "status",
        "decided_by",
        "created_at",
    )
    list_filter = ("status", "decided_by", "reason")
    search_fields = ("=id", "=first__id", "=second__id", "=user__username")
    ordering = ("-similarity", "-created_at")
    actions = ("same", "different")

    @admin.action(description="The chosen pairs are the same", permissions=["view"])
    def same(self, request: HttpRequest, chosen: QuerySet[EntityMergeProposal]) -> None:
        self._decide(request, chosen, same=True)

    @admin.action(description="The chosen pairs are two things", permissions=["view"])
    def different(self, request: HttpRequest, chosen: QuerySet[EntityMergeProposal]) -> None:
        self._decide(request, chosen, same=False)

    def _decide(
        self, request: HttpRequest, chosen: QuerySet[EntityMergeProposal], *, same: bool
    ) -> None:
        decided, refused = 0, 0
        open_ones = chosen.filter(status=EntityMergeProposal.Status.OPEN)
        for row in open_ones.select_related("user"):
            try:
                entities.decide(
                    user=row.user,
                    proposal_id=row.id,
                    same=same,
                    at=timezone.now(),
                    by=Entity.By.STAFF,
                )
                decided += 1
            except RequestError:
                refused += 1
        self.message_user(request, f"{decided} decided.")
        if refused:
            self.message_user(request, f"{refused} of different kinds.", messages.WARNING)


@admin.register(MemoryLink)
class MemoryLinkAdmin(CuratedAdmin):
    private_fields = ("reasoning", "bond")
    list_display = (
        "short_id",
        "user",
        "source",
        "link_type",
        "target",
        "author",
        "weight",
        "confirmed_at",
        "private_length",
        "created_at",
    )
    list_filter = (
        "link_type",
        "author",
        ("confirmed_at", admin.EmptyFieldListFilter),
        "created_at",
    )
    search_fields = ("=id", "=source__id", "=target__id", "=user__username")
    ordering = ("-created_at", "-id")
