"""What calls to models cost, by person, and who chose what. Keys are on no page."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from mira_site.admin import CuratedAdmin
from mira_site.llm.models import ModelCall, ModelSettings, ProviderKey


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


@admin.register(ModelSettings)
class ModelSettingsAdmin(CuratedAdmin):
    private_fields = ("chosen",)
    list_display = ("user", "monthly_cap", "noticed_on")
    search_fields = ("user__username",)


@admin.register(ProviderKey)
class ProviderKeyAdmin(CuratedAdmin):
    """That there is a key, and since when."""

    fields = ("id", "user", "set_at")
    list_display = ("user", "set_at")
    search_fields = ("user__username",)

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        return super().get_queryset(request).defer("secret", "last_four")
