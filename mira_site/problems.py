"""Errors as RFC 9457 problem details (application/problem+json)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseServerError,
    JsonResponse,
)
from django.template import loader
from django.views import defaults
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import set_rollback

from mira_site.errors import ConfirmationNeeded, MiraError, RequestError

log = structlog.get_logger(__name__)

CONTENT_TYPE = "application/problem+json"
API_PREFIX = "/api/"


def problem(
    status_code: int, code: str, detail: str, errors: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The body: `type` names the kind of problem, `errors` lists texts by bad field."""
    body: dict[str, Any] = {
        "type": f"urn:mira:problem:{code.replace('_', '-')}",
        "title": HTTPStatus(status_code).phrase,
        "status": status_code,
        "detail": detail,
    }
    if errors:
        body["errors"] = errors
    return body


async def send_problem(
    send: Any, status_code: int, code: str, detail: str, headers: Iterable[tuple[str, str]] = ()
) -> None:
    """The answer of an ASGI application that stands before or beside Django."""
    body = json.dumps(problem(status_code, code, detail)).encode()
    told = (("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(body))), *headers)
    encoded = [(name.lower().encode(), value.encode()) for name, value in told]
    await send({"type": "http.response.start", "status": status_code, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def from_error(error: MiraError) -> dict[str, Any]:
    fields = (
        {name: [text] for name, text in error.fields.items()}
        if isinstance(error, RequestError)
        else None
    )
    body = problem(error.status, error.code, str(error), fields)
    if isinstance(error, ConfirmationNeeded):
        body["confirmation"] = error.confirmation
    return body


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's hook: our errors, DRF's and Django's as problem details; anything else stays a 500."""
    set_rollback()
    headers: dict[str, str] = {}
    if isinstance(error, MiraError):
        if error.status >= status.HTTP_500_INTERNAL_SERVER_ERROR:
            log.warning("request.failed", code=error.code)
        body = from_error(error)
    elif isinstance(error, Http404):
        body = problem(404, "not_found", "There is nothing at this address.")
    elif isinstance(error, PermissionDenied):
        body = problem(403, "permission_refused", "This is not yours to do.")
    elif isinstance(error, exceptions.ValidationError):
        body = problem(
            400, "bad_request", "Some fields need another value; see errors.", _fields(error.detail)
        )
    elif isinstance(error, exceptions.APIException):
        body = problem(error.status_code, str(error.get_codes()), str(error.detail))
        headers = _headers(error)
    else:
        return None
    return Response(body, status=body["status"], headers=headers, content_type=CONTENT_TYPE)


def _headers(error: exceptions.APIException) -> dict[str, str]:
    headers: dict[str, str] = {}
    if getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = error.auth_header  # type: ignore[attr-defined]
    if getattr(error, "wait", None):
        headers["Retry-After"] = str(int(error.wait))  # type: ignore[attr-defined]
    return headers


def _fields(detail: Any) -> dict[str, Any]:
    return detail if isinstance(detail, dict) else {"non_field_errors": detail}


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's hook for unknown addresses: a problem under /api/, a page elsewhere."""
    if request.path.startswith(API_PREFIX):
        body = problem(404, "not_found", "There is nothing at this address. See /api/docs/.")
        return JsonResponse(body, status=404, content_type=CONTENT_TYPE)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's hook for what nobody foresaw."""
    if request.path.startswith(API_PREFIX):
        detail = "Something went wrong on this side. It was logged; try again."
        body = problem(500, "internal", detail)
        return JsonResponse(body, status=500, content_type=CONTENT_TYPE)
    # Without context processors: they may be what is broken. The page needs the request itself for
    # the nonce of its inline script.
    page = loader.get_template("500.html").render({"request": request})
    return HttpResponseServerError(page)
