"""Parts of messages that the person had forgotten: what is made of a message leaves them out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from conversations.models import ForgottenPassage, Message
from memory.selectors import sentences
from memory.types import Imprint
from mira_site.accounts.models import User


class Span(NamedTuple):
    start: int
    end: int


def readable(user: User, segment_id: UUID) -> list[Message]:
    """The messages of a segment, oldest first, their texts without what was forgotten.

    What is left blank by that is left out, unless files came with it, and what was said off the
    record. Do not save them.
    """
    rows = Message.objects.for_user(user).filter(segment_id=segment_id, is_off_record=False)
    rows = rows.order_by("position")
    messages = list(rows.defer("search_vector").prefetch_related("forgotten", "attachments"))
    for message in messages:
        message.text = read(message)
    return [one for one in messages if one.text.strip() or one.attachments.all()]


def read(message: Message) -> str:
    """The message's text without what was forgotten of it; of many, `forgotten` is prefetched."""
    return without(message.text, [Span(row.start, row.end) for row in message.forgotten.all()])


def without(text: str, spans: Iterable[Span]) -> str:
    """The text without these spans, which may overlap."""
    kept, end = [], 0
    for span in sorted(spans):
        kept.append(text[end : max(end, span.start)])
        end = max(end, span.end)
    return "".join([*kept, text[end:]]) if kept else text


def quoting(text: str, imprint: Imprint, *, known: Sequence[str] = ()) -> list[Span]:
    """The sentences of the text that say what is forgotten; the `known` ones surely do."""
    return [
        span
        for span in _sentences(text)
        if imprint.is_in(text[span.start : span.end])
        or any(_is_of(text[span.start : span.end], one) for one in known)
    ]


def store(user: User, spans: Iterable[tuple[UUID, Span]]) -> int:
    """Keep which passages of which messages are forgotten. Returns how many were named."""
    rows = [
        ForgottenPassage(user=user, message_id=message_id, start=span.start, end=span.end)
        for message_id, span in spans
    ]
    ForgottenPassage.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def _is_of(sentence: str, passage: str) -> bool:
    """Whether one holds the other; two words are in any passage."""
    return passage in sentence or (sentence in passage and len(sentence.split()) > 2)


def _sentences(text: str) -> Iterator[Span]:
    end = 0
    for sentence in sentences(text):
        start = text.find(sentence, end)
        if start >= 0:
            end = start + len(sentence)
            yield Span(start, end)
