"""The thread over HTTP: one class for each operation."""

from __future__ import annotations

import time
import uuid
from typing import Any
from uuid import UUID

from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations import events, paging, presenting, searching, selectors, services, sse, stream
from conversations import serializers as shapes
from conversations.constants import COLLAPSE_WAIT_S, JSON_CHAT_WAIT_S, PAGE_SIZE
from conversations.models import Segment, Turn
from memory import selectors as memory
from mira_site.accounts.types import UserRequest
from mira_site.errors import EventsUnavailable

POLL_S = 0.15  # between looks at a segment that is collapsing
STREAM_WAIT_S = 5  # without an event for this long, the database is asked


class EventStreamRenderer(BaseRenderer):
    """Lets `Accept: text/event-stream` through; problems are sent as JSON all the same."""

    media_type = "text/event-stream"
    format = "sse"
    charset = None

    def render(self, data: Any, *args: Any, **kwargs: Any) -> bytes:
        return JSONRenderer().render(data)


class Chat(APIView):
    renderer_classes = [JSONRenderer, EventStreamRenderer]

    @extend_schema(
        request=shapes.ChatRequest,
        responses={
            (200, "application/json"): shapes.ChatOut,
            (200, "text/event-stream"): OpenApiTypes.STR,
            202: OpenApiResponse(shapes.ChatOut, "Still running; ask for the turn later."),
            409: OpenApiResponse(description="Another turn is open."),
        },
    )
    def post(self, request: UserRequest) -> HttpResponseBase:
        """Say something and wait for the answer, or follow it as server-sent events.

        The same `client_id` again returns the turn that it made, without saying it twice.
        """
        given = shapes.ChatRequest(data=request.data)
        given.is_valid(raise_exception=True)
        turn = services.accept_message(
            user=request.user,
            text=given.validated_data["message"],
            client_id=given.validated_data.get("client_id") or uuid.uuid4(),
            file_ids=given.validated_data.get("attachments", []),
            off_record=given.validated_data.get("off_record", False),
        )
        if request.accepted_renderer.media_type == EventStreamRenderer.media_type:
            return _event_stream(request, turn)
        ended = _wait_for(request, turn)
        return Response(_chat(ended), status=202 if ended.status in Turn.OPEN else 200)


def _event_stream(request: UserRequest, turn: Turn) -> StreamingHttpResponse:
    response = StreamingHttpResponse(
        sse.of_turn(request.user, turn), content_type=EventStreamRenderer.media_type
    )
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"
    return response


def _wait_for(request: UserRequest, turn: Turn) -> Turn:
    """The turn once it has ended, or as it is after a long silence. Without Redis, by asking."""
    current = selectors.turn(request.user, turn.pk)
    deadline = time.monotonic() + JSON_CHAT_WAIT_S
    while current.status in Turn.OPEN and time.monotonic() < deadline:
        try:
            for event in stream.of_turn(
                request.user.pk, turn.pk, turn.resume_after, wait_s=STREAM_WAIT_S
            ):
                if event.type in events.LAST_OF_A_TURN:
                    break
        except EventsUnavailable:
            time.sleep(1)
        current = selectors.turn(request.user, turn.pk)
    return current


def _chat(turn: Turn) -> dict[str, Any]:
    whole = presenting.turn(turn)
    reply = whole["reply"]
    return {
        "turn": whole["id"],
        "status": whole["status"],
        "reply": {k: reply[k] for k in ("id", "text", "created_at")} if reply else None,
        "surfaced": whole["surfaced"],
        "usage": whole["usage"],
        "error": whole["error"],
    }


class TurnDetail(APIView):
    @extend_schema(responses=shapes.TurnOut)
    def get(self, request: UserRequest, turn_id: UUID) -> Response:
        """The state of a turn."""
        return Response(presenting.turn(selectors.turn(request.user, turn_id)))


class TurnStop(APIView):
    @extend_schema(request=None, responses=shapes.TurnOut)
    def post(self, request: UserRequest, turn_id: UUID) -> Response:
        """Stop a turn; what was said so far is kept."""
        services.stop_turn(user=request.user, turn_id=turn_id)
        return Response(presenting.turn(selectors.turn(request.user, turn_id)))


class TurnRetry(APIView):
    @extend_schema(request=None, responses={202: shapes.TurnOut})
    def post(self, request: UserRequest, turn_id: UUID) -> Response:
        """Answer again a message whose turn failed, was interrupted or stopped."""
        services.retry_turn(user=request.user, turn_id=turn_id)
        return Response(presenting.turn(selectors.turn(request.user, turn_id)), status=202)


class TurnContinue(APIView):
    @extend_schema(request=None, responses={202: shapes.TurnOut})
    def post(self, request: UserRequest, turn_id: UUID) -> Response:
        """Ask for the rest of an answer that met the limit of its length: a new turn.

        Asked again for the same turn, it returns the one that was made.
        """
        turn = services.continue_turn(user=request.user, turn_id=turn_id)
        return Response(presenting.turn(selectors.turn(request.user, turn.pk)), status=202)


class Messages(APIView):
    @extend_schema(
        operation_id="messages_list",
        parameters=[shapes.MessagesQuery],
        responses=shapes.MessagePage,
    )
    def get(self, request: UserRequest) -> Response:
        """The thread, newest first. `next` leads to older, `previous` to newer messages.

        `at` gives the page around one message, or around what was said at a date.
        """
        query = shapes.MessagesQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        wanted = query.validated_data
        size = wanted.get("page_size", PAGE_SIZE)
        sought = selectors.message_at(request.user, wanted["at"]) if "at" in wanted else None
        if sought is not None:
            page = paging.around(selectors.messages(request.user), sought.position, size)
        else:
            page = paging.page(
                selectors.messages(request.user), wanted.get("before"), wanted.get("after"), size
            )
        return Response(
            {
                "results": [presenting.message(row) for row in page.rows],
                "at": str(sought.pk) if sought is not None else None,
                "next": page.older_url(request, size),
                "previous": page.newer_url(request, size),
            }
        )


class MessageDetail(APIView):
    @extend_schema(
        request=shapes.MessageChange,
        responses={
            200: shapes.MessageOut,
            409: OpenApiResponse(
                description="MIRA is answering, or say what shall become of what came of it."
            ),
        },
    )
    def patch(self, request: UserRequest, message_id: UUID) -> Response:
        """Change what you said. Its part of the conversation is summarised anew."""
        given = shapes.MessageChange(data=request.data)
        given.is_valid(raise_exception=True)
        services.edit_message(
            user=request.user,
            message_id=message_id,
            text=given.validated_data["text"],
            what_came_of_it=given.validated_data.get("what_came_of_it"),
        )
        return Response(presenting.message(selectors.message(request.user, message_id)))

    @extend_schema(
        parameters=[shapes.MessageDeletion],
        responses={
            200: shapes.MessageDeleted,
            409: OpenApiResponse(
                description="MIRA is answering, or say what shall become of what came of it."
            ),
        },
    )
    def delete(self, request: UserRequest, message_id: UUID) -> Response:
        """Delete a message for good, its answer too unless `with_answer=false`."""
        given = shapes.MessageDeletion(data=request.query_params)
        given.is_valid(raise_exception=True)
        gone = services.delete_message(
            user=request.user, message_id=message_id, **given.validated_data
        )
        return Response(presenting.deleted(gone))


class MessageAftermath(APIView):
    @extend_schema(responses=shapes.CameOfOut)
    def get(self, request: UserRequest, message_id: UUID) -> Response:
        """What came of a message: ask before it is deleted or changed."""
        return Response(presenting.came_of(selectors.what_came_of(request.user, message_id)))


class MessageSearch(APIView):
    @extend_schema(parameters=[shapes.SearchQuery], responses=shapes.SearchOut)
    def get(self, request: UserRequest) -> Response:
        """Messages by full text, best first, and collapsed segments by meaning."""
        query = shapes.SearchQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        found = searching.search(request.user, query.validated_data["q"])
        return Response(
            {
                "results": [
                    {"message": presenting.message(hit.message), "highlight": hit.highlight}
                    for hit in found.messages
                ],
                "segments": [
                    {**presenting.segment_label(row), "precis": row.precis}
                    for row in found.segments
                ],
            }
        )


class Segments(APIView):
    @extend_schema(
        operation_id="segments_list",
        parameters=[OpenApiParameter("cursor", str)],
        responses=paging.cursor_page(shapes.SegmentOut),
    )
    def get(self, request: UserRequest) -> Response:
        """The manifest: every segment, newest first."""
        pagination = paging.SegmentPagination()
        rows = pagination.paginate_queryset(selectors.segments(request.user), request, view=self)
        return pagination.get_paginated_response([presenting.segment(row) for row in rows or []])


class SegmentDetail(APIView):
    @extend_schema(responses=shapes.SegmentWhole)
    def get(self, request: UserRequest, segment_id: UUID) -> Response:
        """One segment with its trace and the memories made of it."""
        segment = selectors.segment(request.user, segment_id)
        made = memory.made_of_segment(request.user, segment_id)
        return Response(
            {
                **presenting.segment(segment),
                "memories": [{"id": str(item.pk), "text": item.text} for item in made],
            }
        )


class SegmentCollapse(APIView):
    @extend_schema(
        request=None,
        responses={
            200: shapes.SegmentOut,
            202: OpenApiResponse(
                shapes.SegmentOut,
                "Still collapsing; it will be done soon. With `collapse_asked_at`: once the answer "
                "that is being written is there.",
            ),
            409: OpenApiResponse(description="Nothing to collapse."),
        },
    )
    def post(self, request: UserRequest) -> Response:
        """Put the active segment to rest now, or once the answer is there."""
        segment = services.collapse_now(user=request.user)
        if segment.collapse_asked_at is not None:
            return Response(presenting.segment(segment), status=202)
        deadline = time.monotonic() + COLLAPSE_WAIT_S
        while segment.status != Segment.Status.COLLAPSED and time.monotonic() < deadline:
            time.sleep(POLL_S)
            segment = selectors.segment(request.user, segment.pk)
            if segment.next_attempt_at is not None:
                break  # it failed and waits for another try; no use in waiting here
        is_done = segment.status == Segment.Status.COLLAPSED
        return Response(presenting.segment(segment), status=200 if is_done else 202)


class SegmentReopen(APIView):
    @extend_schema(
        request=None,
        responses={
            200: shapes.SegmentOut,
            409: OpenApiResponse(
                description="The time is over, something newer was said, or it is being worked on."
            ),
        },
    )
    def post(self, request: UserRequest, segment_id: UUID) -> Response:
        """Take the last collapse back, within ten minutes: what it made is withdrawn."""
        return Response(
            presenting.segment(services.reopen_segment(user=request.user, segment_id=segment_id))
        )
