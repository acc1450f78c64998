"""The page that shows what a question would bring up: candidates, choice, cost, and the context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from memory import pages, places, selectors
from memory.constants import (
    BUDGET_TOKENS,
    BUDGET_TOKENS_MAX,
    QUESTION_MAX_CHARS,
    RECALL_LIMIT_MAX,
)
from memory.places import Wing
from memory.types import ContextItem, Factors, LeftOutItem, Mode, Parts, RecallContext, Recalled
from mira_site.accounts.types import SignedInRequest

MODES = {
    Mode.VERBATIM: "in full",
    Mode.EXCERPT: "in part",
    Mode.FINGERPRINT: "as its facts",
    Mode.HEADER: "as a mention",
}
BAD_BUDGET = f"Give a number of tokens from 1 to {BUDGET_TOKENS_MAX:,}."
# What each number means, in the order they are shown: first what relevance rests on.
MEANINGS = {
    "relevance": (
        "Relevance",
        "How likely this is needed for the question, all in all. It alone decides who comes first.",
    ),
    "similarity": ("Meaning", "How near what it means is to what is asked, whatever the words."),
    "words": (
        "Words",
        "How many words of the question it holds. Rare words count more than common ones.",
    ),
    "late": (
        "Wording",
        "How well each word of the question finds its like in it, or in what was said around it.",
    ),
    "session": (
        "Conversation",
        "How much the conversation it comes from is about the question.",
    ),
    "named": ("Name", "Whether it mentions somebody or something that the question names."),
    "month": ("Date", "Whether it was said at the time that the question names."),
    "other_speaker": (
        "Another voice",
        "Whether somebody else said it than the one whom the question names. Counts against it.",
    ),
    "asks": ("Asks itself", "Whether it is a question itself. Counts a little against it."),
    "particular": (
        "Particular",
        "Whether it names somebody or something, as answers do. Counts a little.",
    ),
    "recency": (
        "Freshness",
        "How little it has aged for its kind: decisions stay fresh for years, a note of a "
        "conversation for days. Half of it never fades. Told, but decides nothing here.",
    ),
    "density": ("Density", "How much it says for its length. Told, but decides nothing here."),
    "overlap": (
        "Repetition",
        "How much of it is said already by what is worth more. High means little that is new.",
    ),
    "causal": ("Cause or effect", "Whether what led to it, or came of it, is chosen too."),
    "importance": ("Importance", "How much it has mattered so far, whatever the question."),
}
# Shown where they are so.
RARE = frozenset({"named", "month", "other_speaker", "asks", "particular", "causal"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A number from 0 to 100; `is_trace`: more than nothing, but not one."""

    label: str
    percent: int
    is_trace: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A candidate as it is shown; `mode` and `tokens` only where it was chosen."""

    memory: Recalled
    relevance: Bar
    bars: tuple[Bar, ...]
    mode: str = ""
    shown: str = ""
    tokens: int = 0
    reason: str = ""


class RecallForm(forms.Form):
    """A question, what the answer may cost, and where to look."""

    q = forms.CharField(
        label="Your question",
        required=False,
        max_length=QUESTION_MAX_CHARS,
        error_messages={"max_length": f"Ask in at most {QUESTION_MAX_CHARS:,} characters."},
        widget=forms.TextInput(
            attrs={
                "type": "search",
                "placeholder": "What would you ask me?",
                "autocomplete": "off",
                "enterkeyhint": "search",
            }
        ),
    )
    budget = forms.IntegerField(
        label="Tokens, at most",
        required=False,
        min_value=1,
        max_value=BUDGET_TOKENS_MAX,
        error_messages=dict.fromkeys(("invalid", "min_value", "max_value"), BAD_BUDGET),
        widget=forms.NumberInput(attrs={"list": "recall-budgets", "inputmode": "numeric"}),
    )
    wing = forms.ChoiceField(
        label="Wing",
        required=False,
        error_messages={"invalid_choice": "There is no such wing. Choose one from the list."},
    )

    def __init__(self, given: Any, wings: Sequence[Wing]) -> None:
        wing = given.get("wing", "")
        spelt = {places.same(one.name): one.name for one in wings}
        super().__init__(
            {
                "q": given.get("q", ""),
                "budget": given.get("budget") or BUDGET_TOKENS,
                "wing": spelt.get(places.same(wing), wing),
            },
            auto_id="recall-%s",
            label_suffix="",
        )
        named = [(wing.name, f"{wing.name} ({wing.memories})") for wing in wings]
        self.fields["wing"].choices = [("", "Every wing"), *named]  # type: ignore[attr-defined]


@require_GET
@login_required
def recall(request: SignedInRequest) -> HttpResponse:
    """What is asked is in the address, so that it can be kept and asked again."""
    wings = places.wings(request.user)
    form = RecallForm(request.GET, wings)
    shown: dict[str, Any] = {
        "form": form,
        "is_empty": not wings,
        "has_wings": len(wings) > 1 or "wing" in form.errors,
        "meanings": list(MEANINGS.values()),
        "budgets": (250, 1_000, 4_000, 16_000),
    }
    if form.is_valid() and form.cleaned_data["q"]:
        asked = form.cleaned_data
        found = selectors.recall_context(
            request.user,
            asked["q"],
            budget_tokens=asked["budget"],
            limit=RECALL_LIMIT_MAX,
            wing=asked["wing"] or None,
            now=timezone.now(),
        )
        shown |= _result(found, asked)
    return pages.page(request, "memory/recall.html", shown)


def _result(found: RecallContext, asked: dict[str, Any]) -> dict[str, Any]:
    larger = {**asked, "budget": min(BUDGET_TOKENS_MAX, max(1_000, asked["budget"] * 4))}
    return {
        "found": found,
        "wing": asked["wing"],
        "chosen": [_chosen(item) for item in found.items],
        "left_out": [_left_out(item) for item in found.left_out],
        "spent": _percent(found.tokens / found.budget_tokens),
        "quality": int(100 * found.quality),  # never more than it is
        "everywhere": urlencode({**asked, "wing": ""}),
        "larger": urlencode(larger),
        "larger_budget": larger["budget"],
    }


def _chosen(item: ContextItem) -> Row:
    relevance, *bars = _bars(item.factors, item.memory.why.parts)
    return Row(
        memory=item.memory,
        relevance=relevance,
        bars=tuple(bars),
        mode=MODES[item.mode],
        shown="" if item.mode is Mode.VERBATIM else item.shown,
        tokens=item.tokens,
    )


def _left_out(item: LeftOutItem) -> Row:
    relevance, *bars = _bars(item.factors, item.memory.why.parts)
    return Row(memory=item.memory, relevance=relevance, bars=tuple(bars), reason=item.reason)


def _bars(factors: Factors, parts: Parts) -> list[Bar]:
    values = {**asdict(parts), "words": parts.overlap, **asdict(factors)}
    return [
        Bar(
            label=label,
            percent=_percent(values[name]),
            is_trace=values[name] > 0 and not _percent(values[name]),
        )
        for name, (label, _) in MEANINGS.items()
        if values[name] > 0 or name not in RARE
    ]


def _percent(share: float) -> int:
    return round(100 * min(1.0, max(0.0, share)))
