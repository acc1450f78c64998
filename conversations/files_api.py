"""Files over HTTP: upload, look at, download, take back."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations import presenting, selectors, services
from conversations import serializers as shapes
from conversations.constants import FILE_MAX_BYTES
from conversations.files import IMAGES
from mira_site.accounts.types import UserRequest
from mira_site.errors import BadRequest, TooLarge

# Nothing in a file may run or load anything, even where a browser shows it by itself.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


class AnyRenderer(BaseRenderer):
    """Lets any `Accept` through; problems are sent as JSON all the same."""

    media_type = "*/*"
    format = "content"
    charset = None

    def render(self, data: Any, *args: Any, **kwargs: Any) -> bytes:
        return JSONRenderer().render(data)


class Files(APIView):
    parser_classes = [MultiPartParser]

    @extend_schema(
        request={"multipart/form-data": shapes.FileUpload},
        responses={
            201: shapes.FileOut,
            400: OpenApiResponse(description="It cannot be taken; `errors.file` says why."),
            413: OpenApiResponse(description="More than 20 MB."),
        },
    )
    def post(self, request: UserRequest) -> Response:
        """Upload one file, to be sent with a message. What is not sent is deleted after a day."""
        uploaded = request.FILES.getlist("file")
        if len(uploaded) != 1:
            raise BadRequest(
                "Send one file, in the field named file.", fields={"file": "One file is needed."}
            )
        [file] = uploaded
        if (file.size or 0) > FILE_MAX_BYTES:
            detail = f"A file may have at most {FILE_MAX_BYTES // 1_000_000} MB."
            raise TooLarge(detail, fields={"file": detail})
        kept = services.keep_file(user=request.user, name=file.name or "", content=file.read())
        return Response(presenting.attachment(kept), status=201)


class FileDetail(APIView):
    @extend_schema(responses=shapes.FileOut)
    def get(self, request: UserRequest, file_id: UUID) -> Response:
        """What a file is."""
        return Response(presenting.attachment(selectors.file(request.user, file_id)))

    @extend_schema(
        responses={204: None, 409: OpenApiResponse(description="It was sent with a message.")}
    )
    def delete(self, request: UserRequest, file_id: UUID) -> Response:
        """Take back a file that was not sent."""
        services.discard_file(user=request.user, file_id=file_id)
        return Response(status=204)


class FileContent(APIView):
    renderer_classes = [AnyRenderer]

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: UserRequest, file_id: UUID) -> HttpResponse:
        """What is in a file, as it is kept. Pictures are shown, all else is a download."""
        file, content = selectors.file_content(request.user, file_id)
        response = HttpResponse(content, content_type=file.media_type)
        # A PDF is a download too: a browser shows none under the policy, and not without it.
        disposition = content_disposition_header(file.media_type not in IMAGES, file.name)
        response["Content-Disposition"] = disposition or "inline"
        response["Content-Security-Policy"] = POLICY
        response["X-Content-Type-Options"] = "nosniff"
        response["Cross-Origin-Resource-Policy"] = "same-origin"
        # What is, or may yet be, off the record is not to stay in the browser either.
        is_kept = file.message is not None and not file.message.is_off_record
        response["Cache-Control"] = "private, max-age=3600" if is_kept else "no-store"
        return response
