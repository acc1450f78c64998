"""Operations under /api/v1/auth/ and /api/v1/me/."""

from __future__ import annotations

from allauth.account.adapter import get_adapter
from django.forms import ValidationError
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from knox.models import AuthToken
from rest_framework import status
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.permissions import AllowAny, BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from mira_site import isolation
from mira_site.accounts import selectors, services, usage
from mira_site.accounts.authentication import ScopedTokenAuthentication
from mira_site.accounts.constants import FAILED_SIGN_IN_WAIT_S
from mira_site.accounts.serializers import (
    MeChangesSerializer,
    MeSerializer,
    TokenRequestSerializer,
    TokenSerializer,
    UsageSerializer,
)
from mira_site.accounts.throttles import TokenByAccount, TokenByAddress
from mira_site.accounts.types import UserRequest


class TokenView(APIView):
    """API tokens. POST takes a password and no session; DELETE the token that is to end."""

    def is_request_for_token(self) -> bool:
        return self.request is not None and self.request.method == "POST"

    def get_authenticators(self) -> list[BaseAuthentication]:
        return [] if self.is_request_for_token() else [ScopedTokenAuthentication()]

    def get_permissions(self) -> list[BasePermission]:
        return [AllowAny()] if self.is_request_for_token() else [IsAuthenticated()]

    def get_throttles(self) -> list[BaseThrottle]:
        return [TokenByAddress(), TokenByAccount()] if self.is_request_for_token() else []

    def get_authenticate_header(self, request: Request) -> str:
        """DRF answers 401, not 403, only if there is one."""
        return str(ScopedTokenAuthentication().authenticate_header(request))

    @extend_schema(
        operation_id="auth_token_create",
        summary="Exchange a password for a token",
        request=TokenRequestSerializer,
        responses={
            200: TokenSerializer,
            401: OpenApiResponse(description="The name or the password is wrong."),
            429: OpenApiResponse(description="Too many requests; see Retry-After."),
        },
        auth=[],
        tags=["auth"],
    )
    def post(self, request: Request) -> Response:
        asked = TokenRequestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        try:
            # It counts failures together with those of the sign-in page.
            user = get_adapter().authenticate(
                request._request,
                username=asked.validated_data["username"].strip(),
                password=asked.validated_data["password"],
            )
        except ValidationError:
            raise Throttled(wait=FAILED_SIGN_IN_WAIT_S) from None
        if user is None or not user.is_active:
            raise AuthenticationFailed("The name or the password is wrong.")
        with isolation.acting_as(user.pk):
            name = asked.validated_data.get("name", "")
            issued = services.issue_token(user=user, name=name)
        return Response(TokenSerializer(issued).data)

    @extend_schema(
        operation_id="auth_token_destroy",
        summary="Revoke the token of this request",
        request=None,
        responses={204: None},
        tags=["auth"],
    )
    def delete(self, request: UserRequest) -> Response:
        token: AuthToken = request.auth
        services.revoke_tokens(digests=[token.digest])
        return Response(status=status.HTTP_204_NO_CONTENT)


class MeView(APIView):
    """The signed-in person."""

    @extend_schema(
        operation_id="me_retrieve",
        summary="The signed-in person",
        responses={200: MeSerializer},
        tags=["me"],
    )
    def get(self, request: UserRequest) -> Response:
        return Response(MeSerializer(selectors.profile(request.user)).data)

    @extend_schema(
        operation_id="me_partial_update",
        summary="Change the name, the time zone or settings",
        request=MeChangesSerializer,
        responses={200: MeSerializer, 400: OpenApiResponse(description="See `errors`.")},
        tags=["me"],
    )
    def patch(self, request: UserRequest) -> Response:
        changes = MeChangesSerializer(data=request.data)
        changes.is_valid(raise_exception=True)
        user = services.update_profile(
            user=request.user,
            zone_name=changes.validated_data.get("timezone"),
            name=changes.validated_data.get("name"),
            chosen=changes.validated_data.get("settings"),
        )
        return Response(MeSerializer(selectors.profile(user)).data)


class UsageView(APIView):
    """What models cost the signed-in person."""

    @extend_schema(
        operation_id="usage_retrieve",
        summary="What models cost, by month, job and model",
        parameters=[
            OpenApiParameter("month", str, description="Like 2026-11; the current one if left out.")
        ],
        responses={200: UsageSerializer, 400: OpenApiResponse(description="See `errors`.")},
        tags=["me"],
    )
    def get(self, request: UserRequest) -> Response:
        first_on = usage.month(request.user, request.query_params.get("month", ""))
        return Response(UsageSerializer(usage.of(request.user, first_on)).data)
