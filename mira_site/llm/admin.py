"""What calls to models cost, by person."""

from __future__ import annotations

from django.contrib import admin

from mira_site.admin import CuratedAdmin
from mira_site.llm.models import ModelCall


@admin.register(ModelCall)
class ModelCallAdmin(CuratedAdmin):
    list_display = (
        "short_id", "user", "job", "tier", "model", "outcome", "input_tokens", "output_tokens",
        "cache_read_tokens", "cache_write_tokens", "cost", "took_ms", "created_at",
    )  # fmt: skip
    list_filter = ("outcome", "job", "tier", "model")
    search_fields = ("user__username",)
    date_hierarchy = "created_at"
    ordering = ("-created_at",)
