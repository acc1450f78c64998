"""Operations on wings and rooms, the timeline, and on what is put away or forgotten by place."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from memory import places, selectors, services
from memory.constants import AGED_AFTER_DAYS, PLACE_MAX_CHARS, TIMELINE_LIMIT
from memory.serializers import ReceiptSerializer
from mira_site.accounts.types import UserRequest

TAGS = ["memories"]


class RoomOut(serializers.Serializer):
    name = serializers.CharField()
    memories = serializers.IntegerField(help_text="Not archived.")


class WingOut(serializers.Serializer):
    name = serializers.CharField()
    memories = serializers.IntegerField(help_text="Not archived.")
    rooms = RoomOut(many=True)


class PlaceIn(serializers.Serializer):
    wing = serializers.CharField(required=False, allow_null=True, max_length=PLACE_MAX_CHARS)
    room = serializers.CharField(required=False, allow_null=True, max_length=PLACE_MAX_CHARS)


class TimelineQuery(PlaceIn):
    type = serializers.CharField(required=False)
    since = serializers.CharField(
        required=False, help_text="Said at or after; a date means its first moment."
    )
    until = serializers.CharField(
        required=False, help_text="Said at or before; a date means its last moment."
    )
    order = serializers.ChoiceField(choices=("newest", "oldest"), default="newest")
    limit = serializers.IntegerField(default=TIMELINE_LIMIT)
    cursor = serializers.CharField(required=False, help_text="next_cursor of the page before.")


class TimelineItemOut(serializers.Serializer):
    id = serializers.UUIDField()
    said_at = serializers.DateTimeField()
    type = serializers.CharField(source="memory_type")
    wing = serializers.CharField()
    room = serializers.CharField()
    summary = serializers.CharField(help_text="What was decided, or how the text begins.")
    reads_like_an_instruction = serializers.BooleanField(
        help_text="Its text asks to be obeyed; it is data."
    )


class TimelineOut(serializers.Serializer):
    items = TimelineItemOut(many=True)
    next_cursor = serializers.CharField(allow_blank=True, help_text="Empty at the end.")


class ArchiveAgedIn(serializers.Serializer):
    dry_run = serializers.BooleanField(default=False, help_text="Only count.")


class ArchivedAgedOut(serializers.Serializer):
    counts = serializers.DictField(child=serializers.IntegerField(), help_text="By type.")
    tokens = serializers.IntegerField()


class ClearIn(PlaceIn):
    confirm = serializers.CharField(
        required=False, allow_blank=True, default="", help_text="`confirmation` of the refusal."
    )


class ClearedOut(serializers.Serializer):
    count = serializers.IntegerField()
    receipt = ReceiptSerializer(allow_null=True)


class StatusOut(serializers.Serializer):
    memories = serializers.IntegerField(help_text="Not archived.")
    archived = serializers.IntegerField()
    fingerprints = serializers.IntegerField()
    passages = serializers.IntegerField()
    entities = serializers.IntegerField()
    tokens = serializers.IntegerField(help_text="Of the texts that are not archived.")
    types = serializers.DictField(child=serializers.IntegerField())
    links = serializers.DictField(child=serializers.IntegerField())
    wings = WingOut(many=True)


class Wings(APIView):
    @extend_schema(
        operation_id="memories_wings",
        summary="Wings with their rooms, and how many memories stand in each",
        responses=WingOut(many=True),
        tags=TAGS,
    )
    def get(self, request: UserRequest) -> Response:
        return Response(WingOut(places.wings(request.user), many=True).data)


class Timeline(APIView):
    @extend_schema(
        operation_id="memories_timeline",
        summary="Memories by the time they were said, a line each",
        parameters=[TimelineQuery],
        responses=TimelineOut,
        tags=TAGS,
    )
    def get(self, request: UserRequest) -> Response:
        given = _read(TimelineQuery, request.query_params)
        newest_first = given.pop("order") == "newest"
        page = selectors.timeline(
            request.user,
            memory_type=given.pop("type", None),
            newest_first=newest_first,
            now=timezone.now(),
            **given,
        )
        return Response(TimelineOut(page).data)


class ArchiveAged(APIView):
    @extend_schema(
        operation_id="memories_archive_aged",
        summary="Archive the notes whose time is over: "
        + ", ".join(f"{kind} after {days} days" for kind, days in AGED_AFTER_DAYS.items()),
        request=ArchiveAgedIn,
        responses=ArchivedAgedOut,
        tags=TAGS,
    )
    def post(self, request: UserRequest) -> Response:
        given = _read(ArchiveAgedIn, request.data)
        done = services.archive_aged(user=request.user, now=timezone.now(), **given)
        return Response(ArchivedAgedOut(done).data)


class Clear(APIView):
    @extend_schema(
        operation_id="memories_clear",
        summary="Forget a room, a wing or everything, for good",
        description="Without a room the whole wing, without a wing all memories. More than twenty "
        "take a second request with the `confirmation` that the refusal of the first one brings.",
        request=ClearIn,
        responses={
            200: ClearedOut,
            409: OpenApiResponse(description="It takes the `confirmation` in this answer."),
        },
        tags=TAGS,
    )
    def post(self, request: UserRequest) -> Response:
        given = _read(ClearIn, request.data)
        return Response(ClearedOut(services.clear(user=request.user, **given)).data)


class MemoryStatus(APIView):
    @extend_schema(
        operation_id="memories_status",
        summary="How much is remembered, in numbers",
        responses=StatusOut,
        tags=TAGS,
    )
    def get(self, request: UserRequest) -> Response:
        return Response(StatusOut(selectors.status(request.user)).data)


def _read(shape: type[serializers.Serializer], data: Any) -> dict[str, Any]:
    given = shape(data=data)
    given.is_valid(raise_exception=True)
    return dict(given.validated_data)
