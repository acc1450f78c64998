"""Curation of accounts: access, invitations, tokens. No password is set here for anybody."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString

# Knox registers an admin that shows digests; it must have done so before it is taken back.
from knox import admin as knox_admin
from knox.models import AuthToken

from mira_site.accounts import services
from mira_site.accounts.constants import INVITATION_MAX_AGE
from mira_site.accounts.models import Invitation, TokenName, UseDay, User
from mira_site.admin import CuratedAdmin

ACCESS_FIELDS = ("is_active", "is_staff", "is_superuser")


@admin.register(User)
class UserAdmin(CuratedAdmin):
    """Opens and closes accounts. Nobody changes their own access, so one superuser remains."""

    list_display = ["username", "email", *ACCESS_FIELDS, "timezone", "date_joined", "last_login"]
    list_filter = [*ACCESS_FIELDS]
    search_fields = ["username", "email"]
    ordering = ["-date_joined"]
    fields = ["username", "email", *ACCESS_FIELDS, "timezone", "date_joined", "last_login"]
    editable_fields = ACCESS_FIELDS

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        is_theirs_to_change = request.user.is_superuser and obj != request.user
        return super().get_readonly_fields(request, obj) if is_theirs_to_change else [*self.fields]

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        services.set_access(
            user=obj,
            is_active=obj.is_active,
            is_staff=obj.is_staff,
            is_superuser=obj.is_superuser,
        )


class InvitationForm(forms.ModelForm):
    class Meta:
        model = Invitation
        fields = ["email", "expires_at"]

    def clean_expires_at(self) -> datetime:
        expires_at: datetime = self.cleaned_data["expires_at"]
        if expires_at <= timezone.now():
            raise forms.ValidationError("This lies in the past.")
        return expires_at


@admin.register(Invitation)
class InvitationAdmin(CuratedAdmin):
    """Deleting an invitation withdraws it. Its link is shown once, after it was made."""

    form = InvitationForm
    list_display = ["__str__", "created_by", "created_at", "expires_at", "used_at", "used_by"]
    list_select_related = ["created_by", "used_by"]
    search_fields = ["email", "used_by__username"]
    fields = ["email", "expires_at", "created_by", "created_at", "used_at", "used_by"]

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        return super().get_fields(request, obj) if obj else ["email", "expires_at"]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        return super().get_readonly_fields(request, obj) if obj else []

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"expires_at": timezone.now() + INVITATION_MAX_AGE}

    def save_model(self, request: HttpRequest, obj: Invitation, form: Any, change: bool) -> None:
        issued = services.invite(
            by=cast(User, request.user), email=obj.email, expires_at=obj.expires_at
        )
        obj.pk = issued.id
        obj.refresh_from_db()
        path = reverse("invitation", args=[issued.token])
        link = settings.PUBLIC_URL.rstrip("/") + path if settings.PUBLIC_URL else None
        link = link or request.build_absolute_uri(path)
        messages.warning(request, f"The link, shown only this once: {link}")


@admin.register(UseDay)
class UseDayAdmin(CuratedAdmin):
    list_display = ["user", "day_on", "message_count"]
    date_hierarchy = "day_on"
    search_fields = ["user__username"]


@admin.register(TokenName)
class TokenNameAdmin(CuratedAdmin):
    """Who has named tokens. The names are theirs, and the digests are on no page."""

    private_fields = ("name",)
    fields = ["id", "user", "name"]
    list_display = ["short_id", "user", "private_length"]
    search_fields = ["user__username"]


admin.site.unregister(knox_admin.models.AuthToken)


@admin.register(AuthToken)
class TokenAdmin(CuratedAdmin):
    """Who has API tokens, and an action that ends them. Rows are not opened: they are hashes."""

    list_display = ["user", "created", "expiry"]
    list_display_links = None
    search_fields = ["user__username"]
    ordering = ["-created"]
    actions = ["revoke"]

    @admin.action(description="Revoke the selected tokens", permissions=["revoke"])
    def revoke(self, request: HttpRequest, tokens: QuerySet) -> None:
        digests = list(tokens.values_list("digest", flat=True))
        messages.success(request, f"{services.revoke_tokens(digests=digests)} tokens revoked.")

    def action_checkbox(self, token: AuthToken) -> SafeString:
        """Django's would name the row by its hash."""
        box = forms.CheckboxInput(
            {"class": "action-select", "aria-label": f"Select the token of {token.user}"},
            check_test=lambda value: False,
        )
        return box.render(ACTION_CHECKBOX_NAME, token.pk)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return obj is None and super().has_view_permission(request)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request)
