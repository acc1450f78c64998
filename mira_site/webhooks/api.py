"""Operations under /api/v1/webhooks/."""

from __future__ import annotations

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

from mira_site.accounts.types import UserRequest
from mira_site.webhooks import selectors, services
from mira_site.webhooks.constants import PAGE_SIZE, PAGE_SIZE_MAX
from mira_site.webhooks.serializers import (
    DeliveryFilters,
    DeliveryOut,
    WebhookChanges,
    WebhookCreated,
    WebhookIn,
    WebhookOut,
)

TAGS = ["webhooks"]
BAD = OpenApiResponse(description="An address that is not called, or an unknown event.")
NO_SUCH = OpenApiResponse(description="There is no such webhook or delivery.")
OFF = OpenApiResponse(description="The webhook is switched off.")


class DeliveryPages(CursorPagination):
    page_size = PAGE_SIZE
    page_size_query_param = "page_size"
    max_page_size = PAGE_SIZE_MAX
    ordering = ("-occurred_at", "-id")


class Webhooks(APIView):
    @extend_schema(
        operation_id="webhooks_list",
        summary="The person's webhooks, oldest first",
        responses=inline_serializer("WebhookList", {"results": WebhookOut(many=True)}),
        tags=TAGS,
    )
    def get(self, request: UserRequest) -> Response:
        rows = selectors.endpoints(request.user)
        return Response({"results": WebhookOut(rows, many=True).data})

    @extend_schema(
        operation_id="webhooks_create",
        summary="Hear of events; the answer holds the secret, once",
        request=WebhookIn,
        responses={201: WebhookCreated, 400: BAD},
        tags=TAGS,
    )
    def post(self, request: UserRequest) -> Response:
        given = WebhookIn(data=request.data)
        given.is_valid(raise_exception=True)
        made = services.create(user=request.user, **given.validated_data)
        shown = selectors.endpoint(request.user, made.endpoint.id)
        body = WebhookCreated(shown, context={"secret": made.secret}).data
        return Response(body, status=status.HTTP_201_CREATED)


class WebhookDetail(APIView):
    @extend_schema(
        operation_id="webhooks_retrieve",
        summary="One webhook",
        responses={200: WebhookOut, 404: NO_SUCH},
        tags=TAGS,
    )
    def get(self, request: UserRequest, endpoint_id: UUID) -> Response:
        return Response(WebhookOut(selectors.endpoint(request.user, endpoint_id)).data)

    @extend_schema(
        operation_id="webhooks_partial_update",
        summary="Change the address or the events, switch it on or off",
        request=WebhookChanges,
        responses={200: WebhookOut, 400: BAD, 404: NO_SUCH},
        tags=TAGS,
    )
    def patch(self, request: UserRequest, endpoint_id: UUID) -> Response:
        given = WebhookChanges(data=request.data)
        given.is_valid(raise_exception=True)
        services.change(user=request.user, endpoint_id=endpoint_id, **given.validated_data)
        return Response(WebhookOut(selectors.endpoint(request.user, endpoint_id)).data)

    @extend_schema(
        operation_id="webhooks_destroy",
        summary="Delete a webhook, with what was still to be told to it",
        responses={204: None, 404: NO_SUCH},
        tags=TAGS,
    )
    def delete(self, request: UserRequest, endpoint_id: UUID) -> Response:
        services.delete(user=request.user, endpoint_id=endpoint_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class WebhookTest(APIView):
    @extend_schema(
        operation_id="webhooks_test",
        summary="Send an event of type webhook.test",
        request=None,
        responses={202: DeliveryOut, 404: NO_SUCH, 409: OFF},
        tags=TAGS,
    )
    def post(self, request: UserRequest, endpoint_id: UUID) -> Response:
        delivery = services.send_test(user=request.user, endpoint_id=endpoint_id)
        return Response(DeliveryOut(delivery).data, status=status.HTTP_202_ACCEPTED)


class Deliveries(APIView):
    @extend_schema(
        operation_id="webhooks_deliveries",
        summary="What was told or is to be told, newest first, for 30 days",
        parameters=[
            DeliveryFilters,
            OpenApiParameter("cursor", str, description="From `next` or `previous`."),
            OpenApiParameter("page_size", int),
        ],
        responses=inline_serializer(
            "DeliveryPage",
            {
                "results": DeliveryOut(many=True),
                "next": serializers.URLField(allow_null=True),
                "previous": serializers.URLField(allow_null=True),
            },
        ),
        tags=TAGS,
    )
    def get(self, request: UserRequest) -> Response:
        asked = DeliveryFilters(data=request.query_params)
        asked.is_valid(raise_exception=True)
        wanted = asked.validated_data
        found = selectors.deliveries(
            request.user, status=wanted.get("status"), endpoint_id=wanted.get("webhook")
        )
        paginator = DeliveryPages()
        page = paginator.paginate_queryset(found, request, view=self)
        return paginator.get_paginated_response(DeliveryOut(page, many=True).data)


class DeliveryResend(APIView):
    @extend_schema(
        operation_id="webhooks_deliveries_resend",
        summary="Send a delivery again, under its old event id",
        request=None,
        responses={202: DeliveryOut, 404: NO_SUCH, 409: OFF},
        tags=TAGS,
    )
    def post(self, request: UserRequest, delivery_id: UUID) -> Response:
        delivery = services.resend(user=request.user, delivery_id=delivery_id)
        return Response(DeliveryOut(delivery).data, status=status.HTTP_202_ACCEPTED)
