"""The admin site: staff curate. They see shapes and counts; private text only after a reason.

Every admin page runs in the logged all-users context, because row-level security would otherwise
hide everybody's rows. Admins of owned models derive from CuratedAdmin. Django loads this module
with the app list (MiraAdminConfig), so it imports no models.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

import structlog
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.admin.apps import AdminConfig
from django.contrib.admin.utils import unquote
from django.contrib.postgres.search import SearchVectorField
from django.core import checks
from django.core.exceptions import PermissionDenied
from django.db.models import F, Field, Model, QuerySet, TextField, Value
from django.db.models.functions import Cast, Coalesce, Length
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from pgvector.django import VectorField

from mira_site import isolation

log = structlog.get_logger(__name__)

REASON_VALID_S = 15 * 60  # how long a stated reason opens one person's private text
REASON_MIN_LENGTH = 10  # characters; long enough to have to say something
MACHINE_FIELDS = (VectorField, SearchVectorField)  # numbers and lexemes: nothing for people
_SESSION_KEY = "admin_private_reasons"


class MiraAdminSite(admin.AdminSite):
    """Django's admin site inside the all-users context, signed in to by the product's own page."""

    site_header = site_title = "MIRA"
    index_title = "Curation"

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Any:
        """Django checks for a staff member first; only then everybody's rows become visible."""

        @functools.wraps(view)
        def scoped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            match = request.resolver_match
            route = match.view_name if match else "unresolved"
            with (
                structlog.contextvars.bound_contextvars(staff=str(request.user.pk)),
                isolation.all_users(reason=f"admin {route}"),
            ):
                response = view(request, *args, **kwargs)
                # Templates query while they render, so they must render in here.
                return _rendered(response)

        return super().admin_view(scoped, cacheable)

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The product's own sign-in page: it carries the rate limits that Django's form lacks."""
        if request.user.is_authenticated:
            if not self.has_permission(request):
                raise PermissionDenied
            return HttpResponseRedirect(reverse("admin:index", current_app=self.name))
        target = request.GET.get("next") or reverse("admin:index", current_app=self.name)
        return HttpResponseRedirect(f"{reverse(settings.LOGIN_URL)}?{urlencode({'next': target})}")


class MiraAdminConfig(AdminConfig):
    default_site = "mira_site.admin.MiraAdminSite"


def _rendered(response: HttpResponse) -> HttpResponse:
    if not getattr(response, "is_rendered", True):
        response.render()  # type: ignore[attr-defined]
    return response


class _Curated:
    """What admins and inlines share: read-only unless named, nothing added or deleted by hand.

    `private_fields`: text of a person, never in lists, and on pages only once a reason was given.
    `editable_fields`: what staff may change; `save_model` then calls a service.
    """

    model: type[Model]
    private_fields: Sequence[str] = ()
    editable_fields: Sequence[str] = ()
    can_delete = False
    extra = 0

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(self.editable_fields) and super().has_change_permission(request, obj)  # type: ignore[misc]

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        """Every column but machine ones; the private ones only while their reason holds."""
        chosen = getattr(self, "fields", None)
        named = list(chosen or [field.name for field in _columns(self.model)])
        if obj is not None and _stated_reason(request, obj):
            return named
        return [name for name in named if name not in self.private_fields]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        return [name for name in self.get_fields(request, obj) if name not in self.editable_fields]

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Private and machine columns stay in the database until a page shows them."""
        found: QuerySet = super().get_queryset(request)  # type: ignore[misc]
        unread = [*self.private_fields, *_machine_columns(self.model)]
        found = found.defer(*unread) if unread else found
        if not self.private_fields:
            return found
        lengths: Any = Value(0)
        for name in self.private_fields:
            lengths = lengths + Coalesce(Length(Cast(F(name), TextField())), Value(0))
        annotated: QuerySet = found.annotate(_private_length=lengths)
        return annotated

    @admin.display(description="private text (characters)", ordering="_private_length")
    def private_length(self, row: Model) -> int:
        """For list_display: how much private text the row holds."""
        return row._private_length  # type: ignore[attr-defined,no-any-return]


class CuratedInline(_Curated, admin.TabularInline):
    """Rows below their parent; their private fields open with the parent's."""

    show_change_link = True


class CuratedAdmin(_Curated, admin.ModelAdmin):
    """The base of every admin of ours."""

    change_form_template = "admin/curated_change_form.html"
    list_per_page = 50
    show_full_result_count = False

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        return [*super().check(**kwargs), *self._check_private_fields()]

    def _check_private_fields(self) -> list[checks.CheckMessage]:
        shown = [*self.list_display, *self.list_filter, *self.search_fields]
        private = {*self.private_fields, *_machine_columns(self.model)}
        return [
            checks.Error(
                f"{name!r} is private or unreadable: it must not be listed, filtered or searched.",
                obj=self.__class__,
                id="mira.E001",
            )
            for name in shown
            if isinstance(name, str) and name.lstrip("^=@").split("__")[0] in private
        ]

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Django lets `?text__startswith=…` through on any column: that would answer guesses."""
        if lookup.split("__")[0] in self.private_fields:
            return False
        return super().lookup_allowed(lookup, value, request)

    def get_list_select_related(self, request: HttpRequest) -> Any:
        """The foreign keys that the list shows."""
        keys = {field.name for field in self.model._meta.concrete_fields if field.is_relation}
        return self.list_select_related or [name for name in self.list_display if name in keys]

    def get_urls(self) -> list[URLPattern]:
        private = path(
            "<path:object_id>/private/",
            self.admin_site.admin_view(self.private_view),
            name=self._private_route(),
        )
        return [private, *super().get_urls()] if self._has_private() else super().get_urls()

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id)) if self._has_private() else None
        if row is None:
            return super().change_view(request, object_id, form_url, extra_context)
        reason = _stated_reason(request, row)
        context = {
            **(extra_context or {}),
            "private_length": self.private_length(row) if self.private_fields else None,
            "private_reason": reason,
            "private_url": reverse(f"admin:{self._private_route()}", args=[row.pk]),
        }
        if not reason:
            return super().change_view(request, object_id, form_url, context)
        log.warning(
            "admin.private_text_opened", model=self.opts.label, row=str(row.pk), reason=reason
        )
        with isolation.all_users(reason=reason):
            return _rendered(super().change_view(request, object_id, form_url, context))

    def private_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks for the reason, keeps it for a while, and goes back to the row."""
        row = self.get_object(request, unquote(object_id))
        if row is None or not self.has_view_permission(request, row):
            raise PermissionDenied
        form = ReasonForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            _state_reason(request, row, form.cleaned_data["reason"])
            minutes = REASON_VALID_S // 60
            messages.warning(request, f"Private text is open for {minutes} minutes. It was logged.")
            return HttpResponseRedirect(
                reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_change", args=[row.pk])
            )
        context = {
            **self.admin_site.each_context(request),
            "title": "Open private text",
            "opts": self.opts,
            "row": row,
            "form": form,
        }
        return render(request, "admin/private_reason.html", context)

    def _has_private(self) -> bool:
        """An inline's private text opens, and is logged, with its parent."""
        inlines = [getattr(inline, "private_fields", ()) for inline in self.inlines]
        return any([self.private_fields, *inlines])

    def _private_route(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}_private"


class ReasonForm(forms.Form):
    reason = forms.CharField(
        min_length=REASON_MIN_LENGTH,
        max_length=200,
        help_text="Why this person's text must be read. It is logged with your account.",
    )


def _owner(row: Model) -> str:
    """Whose text a row holds; a reason opens one person's, not everybody's."""
    return str(getattr(row, "user_id", None) or row.pk)


def _stated_reason(request: HttpRequest, row: Model) -> str:
    """The reason that still holds for this row's owner, or ''."""
    stated = request.session.get(_SESSION_KEY, {}).get(_owner(row))
    if stated is None or stated["until"] < timezone.now().timestamp():
        return ""
    return str(stated["reason"])


def _state_reason(request: HttpRequest, row: Model, reason: str) -> None:
    now = timezone.now().timestamp()
    held = request.session.get(_SESSION_KEY, {})
    held = {owner: stated for owner, stated in held.items() if stated["until"] >= now}
    held[_owner(row)] = {"reason": reason, "until": now + REASON_VALID_S}
    request.session[_SESSION_KEY] = held


def _columns(model: type[Model]) -> list[Field]:
    return [
        field
        for field in model._meta.concrete_fields
        if not isinstance(field, MACHINE_FIELDS) and not _is_machine_generated(field)
    ]


def _machine_columns(model: type[Model]) -> list[str]:
    readable = {field.name for field in _columns(model)}
    return [field.name for field in model._meta.concrete_fields if field.name not in readable]


def _is_machine_generated(field: Field) -> bool:
    return isinstance(getattr(field, "output_field", None), MACHINE_FIELDS)
