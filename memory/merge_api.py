"""Operations on merges: make several memories one, see what was merged, take it back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    inline_serializer,
)
from rest_framework import serializers, status
from rest_framework.pagination import CursorPagination
from rest_framework.response import Response
from rest_framework.views import APIView

from memory import selectors, services
from memory.constants import (
    MERGE_MAX_SOURCES,
    MERGE_UNDO_DAYS,
    NOTE_MAX_CHARS,
    PAGE_SIZE,
    PAGE_SIZE_MAX,
    TEXT_MAX_CHARS,
)
from memory.models import Merge
from mira_site.accounts.types import UserRequest

TAGS = ["memories"]
NO_SUCH = OpenApiResponse(description="There is no such memory or merge.")
IN_THE_WAY = OpenApiResponse(description="They are no one fact, or it is too late; see detail.")


class MemoryMergeIn(serializers.Serializer):
    ids = serializers.ListField(
        child=serializers.UUIDField(), min_length=2, max_length=MERGE_MAX_SOURCES
    )
    text = serializers.CharField(max_length=TEXT_MAX_CHARS)
    note = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=NOTE_MAX_CHARS
    )


class MergePart(serializers.Serializer):
    id = serializers.UUIDField()
    text = serializers.CharField()


class MergeOut(serializers.ModelSerializer):
    """A merge: `memory` is what came of `parts`; until `undo_until` it can be undone."""

    memory = MergePart(source="result")
    parts = MergePart(source="sources", many=True)
    undo_until = serializers.SerializerMethodField()

    class Meta:
        model = Merge
        fields = ("id", "memory", "parts", "note", "author", "merged_at", "undone_at", "undo_until")

    def get_undo_until(self, merge: Merge) -> datetime:
        until: datetime = merge.merged_at + timedelta(days=MERGE_UNDO_DAYS)
        return until


class MergePages(CursorPagination):
    page_size = PAGE_SIZE
    page_size_query_param = "page_size"
    max_page_size = PAGE_SIZE_MAX
    ordering = ("-merged_at", "-id")


class MemoryMerge(APIView):
    @extend_schema(
        operation_id="memories_merge",
        summary="Make several memories one text that says all of it",
        request=MemoryMergeIn,
        responses={201: MergeOut, 404: NO_SUCH, 409: IN_THE_WAY},
        tags=TAGS,
    )
    def post(self, request: UserRequest) -> Response:
        given = MemoryMergeIn(data=request.data)
        given.is_valid(raise_exception=True)
        wanted = given.validated_data
        merge = services.merge(
            user=request.user, memory_ids=wanted["ids"], text=wanted["text"], note=wanted["note"]
        )
        return Response(_shown(request, merge), status=status.HTTP_201_CREATED)


class Merges(APIView):
    @extend_schema(
        operation_id="memories_merges",
        summary="What was merged, newest first, undone merges too",
        parameters=[
            OpenApiParameter("cursor", str, description="From `next` or `previous`."),
            OpenApiParameter("page_size", int),
        ],
        responses=inline_serializer(
            "MergePage",
            {
                "results": MergeOut(many=True),
                "next": serializers.URLField(allow_null=True),
                "previous": serializers.URLField(allow_null=True),
            },
        ),
        tags=TAGS,
    )
    def get(self, request: UserRequest) -> Response:
        paginator = MergePages()
        page = paginator.paginate_queryset(selectors.merges(request.user), request, view=self)
        return paginator.get_paginated_response(MergeOut(page, many=True).data)


class MergeUndo(APIView):
    @extend_schema(
        operation_id="memories_merge_undo",
        summary="Put back what was before a merge, within 30 days",
        request=None,
        responses={200: MergeOut, 404: NO_SUCH, 409: IN_THE_WAY},
        tags=TAGS,
    )
    def post(self, request: UserRequest, merge_id: UUID) -> Response:
        merge = services.undo_merge(user=request.user, merge_id=merge_id)
        return Response(_shown(request, merge))


def _shown(request: UserRequest, merge: Merge) -> dict[str, Any]:
    return dict(MergeOut(selectors.merges(request.user).get(id=merge.id)).data)
