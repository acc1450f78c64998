"""Off the record over HTTP."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations import selectors, services
from conversations import serializers as shapes
from mira_site.accounts.types import UserRequest


class Veil(APIView):
    @extend_schema(operation_id="veil_retrieve", responses=shapes.VeilOut)
    def get(self, request: UserRequest) -> Response:
        """Whether you speak off the record, and when that ends by itself."""
        return Response(selectors.veil_state(request.user))

    @extend_schema(
        operation_id="veil_draw",
        request=None,
        responses={
            200: shapes.VeilOut,
            409: OpenApiResponse(description="The last stretch is still being erased."),
        },
    )
    def post(self, request: UserRequest) -> Response:
        """Speak off the record from now on: it reads memory, never feeds it, and is erased."""
        services.draw_veil(user=request.user)
        return Response(selectors.veil_state(request.user))

    @extend_schema(operation_id="veil_lift", request=None, responses=shapes.VeilOut)
    def delete(self, request: UserRequest) -> Response:
        """Back on the record. What was said off it is erased now, for good."""
        services.lift_veil(user=request.user)
        return Response(selectors.veil_state(request.user))
