"""Addresses of this app: pages, and operations under /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from conversations import api as operations
from conversations import context_api, context_views, files_api, veil_api, views

pages: list[URLPattern | URLResolver] = [
    path("", views.chat, name="chat"),
    path("context/", context_views.newest, name="context"),
    path("context/<uuid:turn_id>/", context_views.turn, name="context_turn"),
]
api: list[URLPattern | URLResolver] = [
    path("chat/", operations.Chat.as_view()),
    path("files/", files_api.Files.as_view()),
    path("files/<uuid:file_id>/", files_api.FileDetail.as_view()),
    path("files/<uuid:file_id>/content/", files_api.FileContent.as_view()),
    path("turns/<uuid:turn_id>/", operations.TurnDetail.as_view()),
    path("turns/<uuid:turn_id>/context/", context_api.TurnContext.as_view()),
    path("turns/<uuid:turn_id>/stop/", operations.TurnStop.as_view()),
    path("turns/<uuid:turn_id>/retry/", operations.TurnRetry.as_view()),
    path("turns/<uuid:turn_id>/continue/", operations.TurnContinue.as_view()),
    path("messages/", operations.Messages.as_view()),
    path("messages/search/", operations.MessageSearch.as_view()),
    path("messages/<uuid:message_id>/", operations.MessageDetail.as_view()),
    path("messages/<uuid:message_id>/what-came-of-it/", operations.MessageAftermath.as_view()),
    path("brief/", context_api.ActiveBrief.as_view()),
    path("veil/", veil_api.Veil.as_view()),
    path("segments/", operations.Segments.as_view()),
    path("segments/collapse/", operations.SegmentCollapse.as_view()),
    path("segments/<uuid:segment_id>/", operations.SegmentDetail.as_view()),
    path("segments/<uuid:segment_id>/reopen/", operations.SegmentReopen.as_view()),
]
