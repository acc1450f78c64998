"""Operations under /api/v1/memories/: verdicts on what came up, and receipts of forgetting."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.pagination import CursorPagination
from rest_framework.response import Response
from rest_framework.views import APIView

from memory import feedback, selectors
from memory.api import shown
from memory.constants import PAGE_SIZE, PAGE_SIZE_MAX, TEXT_MAX_CHARS
from memory.feedback import Judged, Verdict
from memory.serializers import MemorySerializer, ReceiptSerializer
from mira_site.accounts.types import UserRequest

TAGS = ["memories"]
NO_SUCH = OpenApiResponse(description="There is no such memory.")
VERDICTS = [(one.value, one.value.replace("_", " ")) for one in Verdict]


class FeedbackRequest(serializers.Serializer):
    verdict = serializers.ChoiceField(choices=VERDICTS)
    turn = serializers.UUIDField(required=False, help_text="The turn in which it came up.")
    now_true = serializers.CharField(
        required=False,
        max_length=TEXT_MAX_CHARS,
        help_text='With "outdated": what is true instead. It is stored, and answers from now on.',
    )


class FeedbackOut(serializers.Serializer):
    verdict = serializers.ChoiceField(choices=VERDICTS)
    said = serializers.CharField(help_text="What happened, in a sentence.")
    can_undo = serializers.BooleanField()
    reopened = serializers.ListField(
        child=serializers.UUIDField(), help_text="Send it along when the verdict is taken back."
    )
    replaced_by = serializers.UUIDField(allow_null=True)
    memory = MemorySerializer(allow_null=True)
    receipt = ReceiptSerializer(allow_null=True)


class TakeBackRequest(serializers.Serializer):
    verdict = serializers.ChoiceField(choices=VERDICTS)
    reopened = serializers.ListField(child=serializers.UUIDField(), required=False, default=list)


class MemoryFeedback(APIView):
    @extend_schema(
        operation_id="memories_feedback",
        summary="Say that a memory is right, outdated, wrong, never to be mentioned, to forget",
        request=FeedbackRequest,
        responses={200: FeedbackOut, 404: NO_SUCH},
        tags=TAGS,
    )
    def post(self, request: UserRequest, memory_id: UUID) -> Response:
        given = FeedbackRequest(data=request.data)
        given.is_valid(raise_exception=True)
        judged = feedback.judge(
            user=request.user,
            memory_id=memory_id,
            verdict=Verdict(given.validated_data["verdict"]),
            now_true=given.validated_data.get("now_true", ""),
            turn_id=given.validated_data.get("turn"),
        )
        return Response(_judged(request, judged))


class MemoryFeedbackUndo(APIView):
    @extend_schema(
        operation_id="memories_feedback_undo",
        summary="Take a verdict back; not that of forgetting",
        request=TakeBackRequest,
        responses={200: MemorySerializer, 404: NO_SUCH},
        tags=TAGS,
    )
    def post(self, request: UserRequest, memory_id: UUID) -> Response:
        given = TakeBackRequest(data=request.data)
        given.is_valid(raise_exception=True)
        memory = feedback.take_back(
            user=request.user,
            memory_id=memory_id,
            verdict=Verdict(given.validated_data["verdict"]),
            reopened=given.validated_data["reopened"],
        )
        return Response(shown(request, memory))


class ReceiptPagination(CursorPagination):
    page_size = PAGE_SIZE
    page_size_query_param = "page_size"
    max_page_size = PAGE_SIZE_MAX
    ordering = ("-requested_at", "-id")


class Receipts(APIView):
    @extend_schema(
        operation_id="memories_forgotten",
        summary="Receipts of what was forgotten, newest first: counts, never words",
        parameters=[OpenApiParameter("cursor", str), OpenApiParameter("page_size", int)],
        responses=ReceiptSerializer(many=True),
        tags=TAGS,
    )
    def get(self, request: UserRequest) -> Response:
        pagination = ReceiptPagination()
        rows = pagination.paginate_queryset(selectors.receipts(request.user), request, view=self)
        return pagination.get_paginated_response(ReceiptSerializer(rows, many=True).data)


def _judged(request: UserRequest, judged: Judged) -> dict[str, Any]:
    return {
        "verdict": judged.verdict.value,
        "said": judged.said,
        "can_undo": judged.can_undo,
        "reopened": [str(memory_id) for memory_id in judged.reopened],
        "replaced_by": str(judged.replaced_by) if judged.replaced_by else None,
        "memory": shown(request, judged.memory) if judged.memory else None,
        "receipt": ReceiptSerializer(judged.receipt).data if judged.receipt else None,
    }
