"""Long results of tools in short, for the prompts of later turns; the whole stays in the database.

By rule at once, always the same, so that prompts stay cached; by the fast model in the background,
as long as no later prompt has shown the rule's version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Length
from pydantic import BaseModel, Field

from conversations import threads
from conversations.constants import REPLAYED_RESULT_MAX_CHARS, RESULTS_BY_MODEL_MAX
from conversations.models import ToolCall, Turn
from mira_site.accounts.models import User
from mira_site.llm.jobs import Job
from mira_site.llm.types import Tier
from mira_site.prompts import quoted

READING = "read_tool_result"  # its results are what was long already
LISTS = ("results", "emails", "items", "messages")  # spec conversations 6.3
SHORTER = 0.8  # of a text's length, that a summary must not exceed
ELEMENT_CHARS = 600  # of an element that the model chooses by
_LINK = re.compile(r"https?://[^\s<>\"')\]]+")


class ResultInShort(BaseModel):
    """What is worth keeping of a tool's result."""

    keep: list[int] = Field(
        default_factory=list, max_length=200, description="For a list: numbers of elements to keep."
    )
    text: str = Field(
        default="", max_length=REPLAYED_RESULT_MAX_CHARS, description="For a text: it in short."
    )


JOB = Job(
    "tool_result",
    Tier.FAST,
    prompt=("conversations", "tool_result"),
    answer=ResultInShort,
    max_tokens=1_500,
)


def short_id(call_id: UUID) -> str:
    """The name by which the model asks for a result."""
    return f"tr_{call_id.hex[:8]}"


def replayed(call: ToolCall) -> str:
    """The result as prompts of later turns show it."""
    if len(call.result) <= REPLAYED_RESULT_MAX_CHARS:
        return call.result
    return call.compact_result or by_rule(call.result, short_id(call.pk))


def by_rule(text: str, result_id: str = "", *, most: int = REPLAYED_RESULT_MAX_CHARS) -> str:
    """The text in at most `most` characters: whole elements of a JSON list, or head and tail."""
    if len(text) <= most:
        return text
    note = _note(text, result_id)
    room = max(1, most - len(note) - 1)
    found = _list_in(text)
    shown = _first_elements(*found, room) if found else ""
    return f"{shown or _head_and_tail(text, room)}\n{note}"


def are_long(turn: Turn) -> bool:
    """Whether the turn has results to be shortened."""
    return _long(turn).exists()


def compact(user: User, turn_id: UUID) -> int:
    """Shorten the long results of a turn for later prompts; how many were. Twice does no harm."""
    turn = Turn.objects.for_user(user).filter(pk=turn_id).first()
    if turn is None:
        return 0
    rows = list(_long(turn))
    by_model = 0 if turn.is_off_record else RESULTS_BY_MODEL_MAX
    shortened = {
        call.pk: _by_model(call) if place < by_model else "" for place, call in enumerate(rows)
    }
    with transaction.atomic():
        threads.lock_thread(user)
        # A later turn has sent the rule's version, and the provider has it in its cache.
        is_shown = turn.segment.turns.filter(number__gt=turn.number).exists()
        return sum(_keep(call, "" if is_shown else shortened[call.pk]) for call in rows)


def _long(turn: Turn) -> QuerySet[ToolCall]:
    rows: QuerySet[ToolCall] = ToolCall.objects.for_user(turn.user_id)
    rows = rows.filter(turn=turn, compact_result="")
    rows = rows.annotate(length=Length("result")).filter(length__gt=REPLAYED_RESULT_MAX_CHARS)
    return rows.exclude(is_error=True).exclude(name=READING).order_by("-length")


def _keep(call: ToolCall, text: str) -> int:
    """Unless the result was changed meanwhile, as forgetting does."""
    rows = ToolCall.objects.for_user(call.user_id).filter(pk=call.pk, result=call.result)
    text = text or by_rule(call.result, short_id(call.pk))
    return int(rows.update(compact_result=text))


def _by_model(call: ToolCall) -> str:
    """By the fast model's word, checked; "" where it was of no use."""
    found = _list_in(call.result)
    content = _numbered(found[1]) if found else quoted(call.result)
    answer = JOB.ask(
        {
            "tool": quoted(call.name),
            "input": quoted(json.dumps(call.input, ensure_ascii=False)[:1_000]),
            "kind": "list" if found else "text",
            "content": content,
        },
        otherwise=ResultInShort,
    )
    text = _chosen(*found, answer.keep) if found else _summary(call.result, answer.text)
    short = f"{text}\n{_note(call.result, short_id(call.pk))}" if text else ""
    return short if len(short) <= min(len(call.result) - 1, 2 * REPLAYED_RESULT_MAX_CHARS) else ""


def _note(text: str, result_id: str) -> str:
    whole = f"; read_tool_result {result_id} has the whole" if result_id else ""
    return f"[Shortened from {len(text):,} characters{whole}.]"


def _list_in(text: str) -> tuple[Any, list[Any]] | None:
    """A JSON text and the list it is about: the text itself, or the longest of its known parts."""
    if text.lstrip()[:1] not in ("[", "{"):
        return None
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(whole, list):
        return (whole, whole) if whole else None
    lists = [whole[name] for name in LISTS if isinstance(whole.get(name), list) and whole[name]]
    return (whole, max(lists, key=len)) if lists else None


def _first_elements(whole: Any, elements: list[Any], room: int) -> str:
    """The first elements that fit, "" if not even one does."""
    least, most = 0, len(elements)
    while least < most:
        middle = (least + most + 1) // 2
        if len(_with(whole, elements, elements[:middle])) <= room:
            least = middle
        else:
            most = middle - 1
    return _with(whole, elements, elements[:least]) if least else ""


def _with(whole: Any, elements: list[Any], kept: list[Any]) -> str:
    """The JSON text with `kept` in the place of `elements`."""
    if whole is elements:
        return _json(kept)
    return _json({name: kept if value is elements else value for name, value in whole.items()})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _head_and_tail(text: str, room: int) -> str:
    """Two thirds from the beginning, one from the end."""
    gap = "\n[…]\n"
    head = max(1, (room - len(gap)) * 2 // 3)
    tail = max(0, room - len(gap) - head)
    return f"{text[:head]}{gap}{text[len(text) - tail :]}"


def _numbered(elements: Sequence[Any]) -> str:
    lines = (f"{place}: {_json(one)[:ELEMENT_CHARS]}" for place, one in enumerate(elements))
    return quoted("\n".join(lines))


def _chosen(whole: Any, elements: list[Any], keep: Sequence[int]) -> str:
    """The elements with these numbers, in order; "" unless they are some and fewer than all."""
    places = sorted({place for place in keep if 0 <= place < len(elements)})
    if not places or len(places) == len(elements):
        return ""
    return _with(whole, elements, [elements[place] for place in places])


def _summary(original: str, text: str) -> str:
    """The summary, if it is shorter and every address in it stands in the original."""
    text = text.strip()
    links = set(_LINK.findall(text))
    if not text or len(text) > SHORTER * len(original) or any(one not in original for one in links):
        return ""
    return text
