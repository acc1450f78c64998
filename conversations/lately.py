"""What the person said in this part of the conversation, for an answer without a model to quote.

It is no memory yet, and a model would have it before it. So without one, what was said a minute ago
would be the one thing that is not known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from conversations import passages, phrases
from conversations.constants import LATELY_MESSAGES, LATELY_QUOTES
from conversations.models import Message, Turn
from conversations.types import Said
from memory import selectors as memory

PREFIX_CHARS = 3  # of a word that stands for its other forms: lie, lies
FORMS_CHARS = 3  # that a form may be longer: call, called
_ASKING = """
    what where when who whom whose which how why tell remind show find list
    was wo wann wer wen wem wessen welche welcher welches wie warum wieso sag sage erzähl erzähle
    que quoi où quand qui quel quelle comment pourquoi dis raconte
    qué dónde cuándo quién cuál cómo dime cuéntame
"""
ASKING = frozenset(_ASKING.split())


def is_asked(text: str) -> bool:
    """Whether the words ask for something, as far as their sign or their first word tells."""
    first = next(iter(text.casefold().split()), "").strip('¿¡,.!…"“„«')
    return "?" in text or "？" in text or first in ASKING


def said(turn: Turn, question: str) -> list[Said]:
    """Sentences that hold at least half of what the question is about, the best and newest first.

    What was forgotten is left out, and what is off the record, unless the question is so too.
    """
    rows = (
        Message.objects.for_user(turn.user_id)
        .filter(
            segment_id=turn.segment_id,
            role=Message.Role.USER,
            is_off_record__in={False, turn.is_off_record},
        )
        .exclude(turn=turn)
        .defer("search_vector", "content")
        .prefetch_related("forgotten")
    )
    newest_first = rows.order_by("-position")[:LATELY_MESSAGES]
    return fitting(
        question,
        (
            Said(text=sentence, message_id=one.pk, said_at=one.created_at)
            for one in newest_first
            for sentence in memory.sentences(passages.read(one))
        ),
    )


def fitting(question: str, sentences: Iterable[Said]) -> list[Said]:
    """Those that tell something of it, of sentences that come newest first."""
    asked = phrases.telling(question.casefold())
    if not asked:
        return []
    needed = math.ceil(len(asked) / 2)
    found: dict[str, tuple[int, Said]] = {}
    for one in sentences:
        words = phrases.telling(one.text.casefold())
        shared = sum(any(_alike(word, other) for other in words) for word in asked)
        if shared >= needed and not one.text.rstrip().endswith("?"):
            found.setdefault(one.text.casefold(), (shared, one))
    ranked = sorted(found.values(), key=lambda pair: -pair[0])
    return [one for _, one in ranked[:LATELY_QUOTES]]


def _alike(one: str, other: str) -> bool:
    """Whether two words are forms of one, as far as their beginnings tell."""
    short, long = sorted((one, other), key=len)
    is_form = len(short) >= PREFIX_CHARS and len(long) - len(short) <= FORMS_CHARS
    return is_form and long.startswith(short)
