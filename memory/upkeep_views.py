"""Pages where a person settles what only they can: questions, what is held back, faded, merged.

Every action is a form that works without script and comes back to the page it was sent from.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_POST

from memory import feedback, pages, selectors, services, truth, upkeep_selectors
from memory.constants import PAGE_SIZE_MAX, TEXT_MAX_CHARS
from memory.feedback import Verdict
from mira_site.accounts.types import SignedInRequest
from mira_site.errors import BadRequest, DependencyError, NotFound, RequestError

NOT_SAID = "That did not work. Try again."
CHOICES = [("older", "older"), ("newer", "newer"), ("both", "both")]


class ResolveForm(forms.Form):
    keep = forms.ChoiceField(choices=CHOICES)


class VerdictForm(forms.Form):
    verdict = forms.ChoiceField(choices=[(one.value, one.value) for one in Verdict])
    now_true = forms.CharField(required=False, max_length=TEXT_MAX_CHARS)


@require_GET
@login_required
def questions(request: SignedInRequest) -> HttpResponse:
    """Memories that cannot both be true."""
    found = truth.open_conflicts(request.user, now=timezone.now())
    rows = found.prefetch_related("older__sources", "newer__sources")
    return pages.page(request, "memory/questions.html", {"conflicts": rows})


@require_POST
@login_required
def resolve(request: SignedInRequest, conflict_id: UUID) -> HttpResponse:
    form = ResolveForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose which one is true.")
        return redirect("memory_questions")
    keep = form.cleaned_data["keep"]

    def settle() -> str:
        truth.resolve(request.user, conflict_id, keep=keep, at=timezone.now())
        return (
            "Settled. "
            + {
                "newer": "The older one is kept as past.",
                "older": "The newer one is in the archive.",
                "both": "Both stay as they are.",
            }[keep]
        )

    return _do(request, settle, then="memory_questions")


@require_GET
@login_required
def held_back(request: SignedInRequest) -> HttpResponse:
    """What reads like an instruction and waits for a look."""
    rows = selectors.memories(request.user, state="held_back")[:PAGE_SIZE_MAX]
    return pages.page(request, "memory/held_back.html", {"rows": rows})


@require_POST
@login_required
def release(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    def let_go() -> str:
        feedback.release(user=request.user, memory_id=memory_id)
        return "Released. It may come up from now on."

    return _do(request, let_go, then="memory_held_back")


@require_GET
@login_required
def faded(request: SignedInRequest) -> HttpResponse:
    """What sank into the archive by itself this week."""
    rows = selectors.memories(request.user, state="faded")[:PAGE_SIZE_MAX]
    return pages.page(request, "memory/faded.html", {"rows": rows})


@require_GET
@login_required
def merged(request: SignedInRequest) -> HttpResponse:
    """Memories that were made of several, and what they were made of."""
    rows = upkeep_selectors.merges(request.user)
    return pages.page(request, "memory/merged.html", {"merges": rows})


@require_POST
@login_required
def undo(request: SignedInRequest, merge_id: UUID) -> HttpResponse:
    def take_apart() -> str:
        services.undo_merge(user=request.user, merge_id=merge_id)
        return "Taken apart again. The memories stand as they were."

    return _do(request, take_apart, then="memory_merged")


@require_GET
@login_required
def forgotten(request: SignedInRequest) -> HttpResponse:
    """Receipts: when, and how much, never what."""
    rows = upkeep_selectors.receipts(request.user)[:PAGE_SIZE_MAX]
    return pages.page(request, "memory/forgotten.html", {"receipts": rows})


@require_POST
@login_required
def judge(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """A verdict from the page of a memory. Forgetting asks once more, on its own page."""
    form = VerdictForm(request.POST)
    if not form.is_valid():
        messages.error(request, NOT_SAID)
        return redirect("memory", memory_id)
    verdict = Verdict(form.cleaned_data["verdict"])
    if verdict == Verdict.FORGET:
        return redirect("memory_forget", memory_id)

    def say() -> str:
        return feedback.judge(
            user=request.user,
            memory_id=memory_id,
            verdict=verdict,
            now_true=form.cleaned_data["now_true"],
        ).said

    return _do(request, say, then="memory", memory_id=memory_id)


@require_POST
@login_required
def take_back(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    form = VerdictForm(request.POST)

    def undo_it() -> str:
        if not form.is_valid():
            raise BadRequest(NOT_SAID)
        feedback.take_back(
            user=request.user,
            memory_id=memory_id,
            verdict=Verdict(form.cleaned_data["verdict"]),
        )
        return "Taken back."

    return _do(request, undo_it, then="memory", memory_id=memory_id)


def _do(
    request: SignedInRequest,
    act: Callable[[], str],
    *,
    then: str,
    memory_id: UUID | None = None,
) -> HttpResponse:
    """Do it, say what happened, and go back to where it was asked for."""
    try:
        messages.success(request, act())
    except NotFound as error:
        raise Http404(str(error)) from error
    except (RequestError, DependencyError) as error:
        messages.error(request, str(error))
    back = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure()):
        return redirect(back)
    return redirect(then, *([memory_id] if memory_id else []))
