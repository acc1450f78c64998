"""Operations on what only the person can settle: contradictions, and what is held back."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    inline_serializer,
)
from rest_framework import serializers
from rest_framework.pagination import CursorPagination
from rest_framework.response import Response
from rest_framework.views import APIView

from memory import feedback, selectors, truth
from memory.api import shown, shown_all
from memory.constants import PAGE_SIZE, PAGE_SIZE_MAX
from memory.models import Conflict
from memory.paging import MemoryPagination
from memory.serializers import MemorySerializer, memory_page
from mira_site.accounts.types import UserRequest

TAGS = ["memories"]
CURSOR = [
    OpenApiParameter("cursor", str, description="From `next` or `previous`."),
    OpenApiParameter("page_size", int),
]
KEEP = (
    ("older", "The newer was wrong; it is archived."),
    ("newer", "It replaces the older, which stays as past."),
    ("both", "They do not contradict each other."),
)
NO_SUCH = OpenApiResponse(description="There is no such conflict.")
NO_SUCH_MEMORY = OpenApiResponse(description="There is no such memory.")
SETTLED = OpenApiResponse(description="It was settled otherwise before.")


class ConflictSide(serializers.Serializer):
    id = serializers.UUIDField()
    text = serializers.CharField()
    created_at = serializers.DateTimeField()


class ConflictOut(serializers.ModelSerializer):
    """Two memories that cannot both be true; `kept` says how it was settled, "" while open."""

    older = ConflictSide()
    newer = ConflictSide()
    kept = serializers.CharField(allow_blank=True)

    class Meta:
        model = Conflict
        fields = (
            "id",
            "older",
            "newer",
            "reasoning",
            "status",
            "kept",
            "created_at",
            "asked_at",
            "resolved_at",
        )


class ConflictResolveRequest(serializers.Serializer):
    keep = serializers.ChoiceField(choices=KEEP)


class ConflictPages(CursorPagination):
    page_size = PAGE_SIZE
    page_size_query_param = "page_size"
    max_page_size = PAGE_SIZE_MAX
    ordering = ("created_at", "id")


class Conflicts(APIView):
    @extend_schema(
        operation_id="memories_conflicts",
        summary="Open contradictions between memories that may come up, the oldest first",
        parameters=CURSOR,
        responses=inline_serializer(
            "ConflictPage",
            {
                "results": ConflictOut(many=True),
                "next": serializers.URLField(allow_null=True),
                "previous": serializers.URLField(allow_null=True),
            },
        ),
        tags=TAGS,
    )
    def get(self, request: UserRequest) -> Response:
        found: QuerySet[Conflict] = truth.open_conflicts(request.user, now=timezone.now())
        paginator = ConflictPages()
        page = paginator.paginate_queryset(found, request, view=self)
        return paginator.get_paginated_response(ConflictOut(page, many=True).data)


class ConflictResolve(APIView):
    @extend_schema(
        operation_id="memories_conflict_resolve",
        summary="Settle a contradiction; settling it the same way twice changes nothing",
        request=ConflictResolveRequest,
        responses={200: ConflictOut, 404: NO_SUCH, 409: SETTLED},
        tags=TAGS,
    )
    def post(self, request: UserRequest, conflict_id: UUID) -> Response:
        given = ConflictResolveRequest(data=request.data)
        given.is_valid(raise_exception=True)
        settled = truth.resolve(
            request.user, conflict_id, keep=given.validated_data["keep"], at=timezone.now()
        )
        return Response(_settled(settled))


class Quarantine(APIView):
    @extend_schema(
        operation_id="memories_quarantine",
        summary="What reads like an instruction and waits for a look, newest first",
        parameters=CURSOR,
        responses=memory_page(),
        tags=TAGS,
    )
    def get(self, request: UserRequest) -> Response:
        paginator = MemoryPagination()
        held = selectors.memories(request.user, state="held_back")
        page = paginator.paginate_queryset(held, request, view=self)
        return paginator.get_paginated_response(shown_all(request, page or []))


class MemoryRelease(APIView):
    @extend_schema(
        operation_id="memories_release",
        summary="It was looked at and is harmless: it may come up from now on",
        request=None,
        responses={200: MemorySerializer, 404: NO_SUCH_MEMORY},
        tags=TAGS,
    )
    def post(self, request: UserRequest, memory_id: UUID) -> Response:
        memory = feedback.release(user=request.user, memory_id=memory_id)
        return Response(shown(request, memory))


def _settled(conflict: Conflict) -> dict[str, Any]:
    return dict(ConflictOut(conflict).data)
