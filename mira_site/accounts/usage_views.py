"""The usage page: what models cost the person, and their cap."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from mira_site.accounts import selectors, services, usage
from mira_site.accounts.settings_forms import CapForm
from mira_site.accounts.types import SignedInRequest
from mira_site.errors import BadRequest
from mira_site.llm import spending

JOB_WORDS = {
    "reply": "Answers",
    "subcortical": "Finding what belongs to a message",
    "observation": "The second pair of eyes",
    "compaction": "Shortening a long talk",
    "summary": "Summaries",
    "extraction": "Making memories",
    "entity_merge": "Telling names apart",
    "curation_integration": "Fitting new memories in",
    "curation_floor": "Looking through old memories",
    "tool_result": "Shortening results of tools",
    "key_test": "Tests of your key",
}
BAR_HEIGHT = 72  # of the chart, in its own units; a day is 10 wide


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def usage_page(request: SignedInRequest) -> HttpResponse:
    """One month in parts, the months there are, and the cap; a POST sets it."""
    form = CapForm(
        request.POST or None,
        auto_id="cap-%s",
        initial={"monthly_cap": selectors.settings_of(request.user).monthly_cap},
    )
    if request.method == "POST" and form.is_valid():
        cap = form.cleaned_data["monthly_cap"]
        services.update_profile(user=request.user, chosen={"monthly_cap": cap})
        messages.success(request, "The cap is set." if cap else "There is no cap any more.")
        return redirect("usage")
    first_on = _month(request)
    zone = selectors.zone(request.user)
    days = spending.days(request.user.pk, zone, first_on)
    found = usage.of(request.user, first_on)
    context = {
        "form": form,
        "usage": found,
        "jobs": [(JOB_WORDS.get(row.name, row.name.replace("_", " ")), row) for row in found.jobs],
        "bars": _bars(days),
        "dearest": max(days, key=lambda day: day[1]),
        "chart_width": 10 * len(days),
    }
    with timezone.override(zone):
        return render(request, "accounts/usage.html", context, status=400 if form.is_bound else 200)


@never_cache
@require_safe
@login_required
def usage_csv(request: SignedInRequest) -> HttpResponse:
    """Every call of a month as a table."""
    first_on = _month(request)
    zone = selectors.zone(request.user)
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    name = f"mira-usage-{first_on:%Y-%m}.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    # Written at once: a streamed body would be read when the request's scope has ended.
    rows = spending.calls(request.user.pk, zone, first_on)
    csv.writer(response).writerows(spending.lines(rows, zone))
    return response


def _month(request: SignedInRequest) -> date:
    try:
        return usage.month(request.user, request.GET.get("month", ""))
    except BadRequest as error:
        raise Http404(str(error)) from error


def _bars(days: Sequence[tuple[date, Decimal]]) -> list[dict[str, object]]:
    """Rectangles of the chart; the dearest day has the full height."""
    most = max(cost for _, cost in days)
    return [
        {
            "day": day,
            "cost": cost,
            "x": 10 * number + 1,
            "y": round(BAR_HEIGHT - height, 1),
            "height": round(height, 1),
        }
        for number, (day, cost) in enumerate(days)
        if (height := max(1.5, float(cost / most) * BAR_HEIGHT) if cost else 0.0)
    ]
