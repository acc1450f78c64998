"""Operations under /api/v1/memories/."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.utils import timezone
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    PolymorphicProxySerializer,
    extend_schema,
)
from rest_framework import status
from rest_framework.response import Response
from rest_framework.views import APIView

from memory import graph_selectors, selectors, services
from memory.models import Memory
from memory.paging import MemoryPagination
from memory.serializers import (
    QUARANTINED,
    ArchiveRequest,
    ExplainedRecallOut,
    MemoryFilters,
    MemorySerializer,
    RecallOut,
    RecallRequest,
    ReceiptSerializer,
    memory_page,
)
from mira_site.accounts import selectors as accounts
from mira_site.accounts.types import UserRequest

NO_SUCH = OpenApiResponse(description="There is no such memory.")
SAID_ALREADY = OpenApiResponse(description="Another memory says the same already.")
TAGS = ["memories"]


class Memories(APIView):
    @extend_schema(
        operation_id="memories_list",
        summary="Memories, newest first; with `q` those that answer it, best first",
        parameters=[
            MemoryFilters,
            OpenApiParameter("cursor", str, description="From `next` or `previous`."),
            OpenApiParameter("page_size", int),
        ],
        responses=memory_page(),
        tags=TAGS,
    )
    def get(self, request: UserRequest) -> Response:
        found = selectors.memories(request.user, **filters(request))
        paginator = MemoryPagination()
        page = paginator.paginate_queryset(found, request, view=self)
        return paginator.get_paginated_response(shown_all(request, page or []))

    @extend_schema(
        operation_id="memories_create",
        summary="Store a memory; what is known already is returned as it is",
        request=MemorySerializer,
        responses={201: MemorySerializer},
        tags=TAGS,
    )
    def post(self, request: UserRequest) -> Response:
        given = MemorySerializer(data=request.data)
        given.is_valid(raise_exception=True)
        memory = services.create(user=request.user, **given.validated_data)
        return Response(shown(request, memory), status=status.HTTP_201_CREATED)


class MemoryDetail(APIView):
    @extend_schema(
        operation_id="memories_retrieve",
        summary="One memory with its sources",
        responses={200: MemorySerializer, 404: NO_SUCH},
        tags=TAGS,
    )
    def get(self, request: UserRequest, memory_id: UUID) -> Response:
        return Response(shown(request, selectors.memory(request.user, memory_id)))

    @extend_schema(
        operation_id="memories_update",
        summary="Change what is given",
        request=MemorySerializer(partial=True),
        responses={200: MemorySerializer, 404: NO_SUCH, 409: SAID_ALREADY},
        tags=TAGS,
    )
    def patch(self, request: UserRequest, memory_id: UUID) -> Response:
        given = MemorySerializer(data=request.data, partial=True)
        given.is_valid(raise_exception=True)
        memory = services.edit(user=request.user, memory_id=memory_id, **given.validated_data)
        return Response(shown(request, memory))

    @extend_schema(
        operation_id="memories_delete",
        summary="Forget a memory for good; the receipt counts what was touched",
        responses={200: ReceiptSerializer, 404: NO_SUCH},
        tags=TAGS,
    )
    def delete(self, request: UserRequest, memory_id: UUID) -> Response:
        receipt = services.forget(user=request.user, memory_id=memory_id)
        return Response(ReceiptSerializer(receipt).data)


class MemoryArchive(APIView):
    @extend_schema(
        operation_id="memories_archive",
        summary="Take a memory out of recall; it stays restorable",
        request=ArchiveRequest,
        responses={200: MemorySerializer, 404: NO_SUCH},
        tags=TAGS,
    )
    def post(self, request: UserRequest, memory_id: UUID) -> Response:
        given = ArchiveRequest(data=request.data)
        given.is_valid(raise_exception=True)
        memory = services.archive(
            user=request.user, memory_id=memory_id, reason=given.validated_data["reason"]
        )
        return Response(shown(request, memory))


class MemoryRestore(APIView):
    @extend_schema(
        operation_id="memories_restore",
        summary="Bring an archived memory back into recall",
        request=None,
        responses={200: MemorySerializer, 404: NO_SUCH, 409: SAID_ALREADY},
        tags=TAGS,
    )
    def post(self, request: UserRequest, memory_id: UUID) -> Response:
        return Response(shown(request, services.restore(user=request.user, memory_id=memory_id)))


class MemoryRecall(APIView):
    @extend_schema(
        operation_id="memories_recall",
        summary="What is remembered about something, rendered within a budget of tokens",
        request=RecallRequest,
        responses=PolymorphicProxySerializer(
            component_name="Recall",
            serializers=[RecallOut, ExplainedRecallOut],
            resource_type_field_name=None,
        ),
        tags=TAGS,
    )
    def post(self, request: UserRequest) -> Response:
        asked = RecallRequest(data=request.data)
        asked.is_valid(raise_exception=True)
        given = asked.validated_data
        context = selectors.recall_context(
            request.user,
            given["query"],
            budget_tokens=given["budget"],
            limit=given["limit"],
            wing=given.get("wing"),
            room=given.get("room"),
            fallback_wings=given["fallback_wings"],
            now=timezone.now(),
        )
        shape = ExplainedRecallOut if given["explain"] else RecallOut
        return Response(shape(context).data)


def filters(request: UserRequest) -> dict[str, Any]:
    """The query string as arguments of the selector; a bad one is a ValidationError."""
    query = MemoryFilters(data=request.query_params, context={"zone": accounts.zone(request.user)})
    query.is_valid(raise_exception=True)
    given = dict(query.validated_data)
    if "type" in given:
        given["memory_type"] = given.pop("type")
    if given.get("state") == QUARANTINED:
        given["state"] = "held_back"
    return given


def shown(request: UserRequest, memory: Memory) -> dict[str, Any]:
    (shown,) = shown_all(request, [selectors.memory(request.user, memory.id)])
    return shown


def shown_all(request: UserRequest, memories: Sequence[Memory]) -> list[dict[str, Any]]:
    """With their links and mentions, in three statements for all."""
    ids = [memory.id for memory in memories]
    around = graph_selectors.around(request.user, ids, now=timezone.now())
    return list(MemorySerializer(memories, many=True, context={"around": around}).data)
