"""Addresses of this app: pages, and operations under /api/v1/."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, path

from memory import api as operations
from memory import views

pages: list[URLPattern | URLResolver] = [
    path("memories/", views.memories, name="memories"),
    path("memories/<uuid:memory_id>/", views.memory, name="memory"),
    path("memories/<uuid:memory_id>/edit/", views.edit, name="memory_edit"),
    path("memories/<uuid:memory_id>/archive/", views.archive, name="memory_archive"),
    path("memories/<uuid:memory_id>/restore/", views.restore, name="memory_restore"),
    path("memories/<uuid:memory_id>/forget/", views.forget, name="memory_forget"),
]
api: list[URLPattern | URLResolver] = [
    path("memories/", operations.Memories.as_view()),
    path("memories/recall/", operations.MemoryRecall.as_view()),
    path("memories/<uuid:memory_id>/", operations.MemoryDetail.as_view()),
    path("memories/<uuid:memory_id>/archive/", operations.MemoryArchive.as_view()),
    path("memories/<uuid:memory_id>/restore/", operations.MemoryRestore.as_view()),
]
