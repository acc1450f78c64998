"""Token sign-in for the API, and passwords checked in a time that tells nothing."""

from __future__ import annotations

from typing import Any

from allauth.account.auth_backends import AuthenticationBackend
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.auth import TokenAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from mira_site import isolation


class ScopedTokenAuthentication(TokenAuthentication):
    """Knox's `Authorization: Token …`, which also scopes the rest of the request to its user."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        found: tuple[Any, Any] | None = super().authenticate(request)
        if found is not None:
            isolation.enter(found[0].pk)
        return found

    def authenticate_credentials(self, token: bytes) -> tuple[Any, Any]:
        try:
            token.decode("ascii")
        except UnicodeDecodeError:  # knox would fail on it
            raise AuthenticationFailed("Invalid token.") from None
        return super().authenticate_credentials(token)  # type: ignore[no-any-return]


class OneCheckBackend(AuthenticationBackend):
    """allauth's backend, checking one password hash for known and unknown names alike.

    Its sign-in form sends an e-mail address under both names. Tried as both, a known address
    would cost two hashes and an unknown one a single hash: the time would tell them apart.
    """

    def authenticate(
        self, request: HttpRequest | None, **credentials: Any
    ) -> AbstractBaseUser | None:
        if credentials.get("email") == credentials.get("username"):
            credentials.pop("email", None)
        return super().authenticate(request, **credentials)  # type: ignore[no-any-return]


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI page names it; drf-spectacular finds it by its existence."""

    target_class = ScopedTokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token …`, from POST /api/v1/auth/token/.",
        }
