"""The staff page of background work: what is due, running, failed. Counts and codes, no text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, Min, Q, QuerySet
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone

from conversations import collapse
from conversations import services as conversations
from conversations.models import Segment
from memory import services as memory
from memory.models import Work
from mira_site.accounts.models import User

SEGMENTS = "collapse"
AGAIN_MAX = 500  # pieces that one click brings back
WHAT_IT_IS = {
    SEGMENTS: "A conversation that went quiet becomes a trace and memories",
    Work.Kind.INTEGRATION.value: "New memories find their place among the old",
    Work.Kind.FLOOR.value: "A look at what has sunk low",
    Work.Kind.ENTITY_MERGE.value: "Names that may be of one thing",
    Work.Kind.RESCORE.value: "Importance brought up to date, the faded archived",
    Work.Kind.REEMBED.value: "Memories of another embedding model are read by the present one",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kind of work. `oldest` is since when the longest waiting is due."""

    job: str
    what: str
    due: int
    waiting: int
    running: int
    failed: int
    oldest: datetime | None
    errors: list[tuple[str, int]]
    list_url: str


def work(request: HttpRequest) -> HttpResponse:
    """The page; a POST brings back what waits after a failure, of one kind of work."""
    if request.method == "POST":
        return _again(request)
    rows = overview(timezone.now())
    context = {
        **admin.site.each_context(request),
        "title": "Background work",
        "rows": rows,
        "all_is_well": not any(row.failed for row in rows),
    }
    return TemplateResponse(request, "admin/work.html", context)


urlpatterns = [path("admin/work/", admin.site.admin_view(work), name="staff_work")]


def overview(now: datetime) -> list[Row]:
    """Every kind of work over all users. Runs inside `all_users`."""
    kinds = [_memory_row(kind, now) for kind in Work.Kind.values]
    return [_segment_row(now), *kinds]


def _segment_row(now: datetime) -> Row:
    left = Segment.objects.filter(status=Segment.Status.COLLAPSING)
    quiet = collapse.gone_quiet(at=now)
    running = Q(status=Segment.Status.COLLAPSING, claimed_until__gt=now)
    waiting = Q(status=Segment.Status.COLLAPSING, next_attempt_at__gt=now)
    due = Segment.objects.filter(quiet | Q(status=Segment.Status.COLLAPSING))
    due = due.exclude(running).exclude(waiting)
    return Row(
        job=SEGMENTS,
        what=WHAT_IT_IS[SEGMENTS],
        due=due.count(),
        waiting=left.filter(waiting).exclude(running).count(),
        running=left.filter(running).count(),
        failed=left.exclude(error_code="").count(),
        oldest=due.aggregate(at=Min(Coalesce("next_attempt_at", "last_message_at")))["at"],
        errors=_errors(left),
        list_url=_list("conversations", "segment", status__exact=Segment.Status.COLLAPSING.value),
    )


def _memory_row(kind: str, now: datetime) -> Row:
    left = Work.objects.filter(kind=kind).exclude(status=Work.Status.DONE)
    running = Q(status=Work.Status.RUNNING, claimed_until__gt=now)
    waiting = Q(next_attempt_at__gt=now) & ~Q(status=Work.Status.RUNNING)
    due = left.exclude(running).exclude(waiting)
    failed = left.filter(status=Work.Status.FAILED)
    return Row(
        job=kind,
        what=WHAT_IT_IS.get(kind, ""),
        due=due.count(),
        waiting=left.filter(waiting).count(),
        running=left.filter(running).count(),
        failed=failed.count(),
        oldest=due.aggregate(at=Min("next_attempt_at"))["at"],
        errors=_errors(failed),
        list_url=_list("memory", "work", kind__exact=kind),
    )


def _errors(rows: QuerySet) -> list[tuple[str, int]]:
    """(code, how many), the commonest first."""
    named = rows.exclude(error_code="").order_by().values_list("error_code")
    return list(named.annotate(count=Count("pk")).order_by("-count", "error_code"))


def _list(app: str, model: str, **filters: Any) -> str:
    return reverse(f"admin:{app}_{model}_changelist", query=filters)


def _again(request: HttpRequest) -> HttpResponse:
    job = request.POST.get("job", "")
    if job != SEGMENTS and job not in Work.Kind.values:
        raise Http404
    count = _collapse_again() if job == SEGMENTS else _hasten(job)
    messages.success(request, f"{count} brought back; they start within moments.")
    return HttpResponseRedirect(reverse("staff_work"))


def _collapse_again() -> int:
    left = Segment.objects.filter(status=Segment.Status.COLLAPSING, next_attempt_at__isnull=False)
    rows = list(left.select_related("user").order_by("next_attempt_at")[:AGAIN_MAX])
    for segment in rows:
        conversations.collapse_again(user=segment.user, segment_id=segment.pk)
    return len(rows)


def _hasten(kind: str) -> int:
    failed = Work.objects.filter(kind=kind, status=Work.Status.FAILED)
    rows = failed.order_by("next_attempt_at").values_list("user_id", "pk")[:AGAIN_MAX]
    return sum(memory.hasten(user=user, work_ids=ids) for user, ids in _by_user(rows))


def _by_user(rows: Iterable[tuple[Any, Any]]) -> Iterable[tuple[User, list[Any]]]:
    found: dict[Any, list[Any]] = {}
    for user_id, pk in rows:
        found.setdefault(user_id, []).append(pk)
    for user in User.objects.filter(pk__in=found):
        yield user, found[user.pk]
