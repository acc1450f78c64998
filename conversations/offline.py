"""Answers and traces without a model: by quoting, never by inventing."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, tzinfo

from conversations.constants import OFFLINE_FILES, OFFLINE_QUOTES, OFFLINE_TRACE_SENTENCES
from conversations.types import Said
from memory.types import Kept, OpenQuestion, Recalled

NOT_CONFIGURED = (
    "No language model is set up here, so I can only quote what I remember. "
    "Whoever runs this server can set `ANTHROPIC_API_KEY` or `ANTHROPIC_BASE_URL`; a key of your "
    "own goes into your [settings](/settings/#key)."
)
KEPT = "I will keep that."
NOTHING = "Nothing of what I remember fits this."
LATER = "What lasts of your words becomes memory when this part of our conversation comes to rest."
UNSEEN_FILE = "I cannot look into a file without a language model; it stays with your message."
UNSEEN_FILES = "I cannot look into files without a language model; they stay with your message."
HELD_BACK = (
    "That reads like an instruction to me, so I have put it aside: it does not come up before you "
    "have looked at it under [held back](/memories/held-back/)."
)
NOT_REACHABLE = (
    "I cannot reach my language model right now, so I can only quote what I remember. "
    "Your message is kept; ask again in a while for a real answer."
)

CAPPED = (
    "{why} Until then I can only quote what I remember; your message is kept, and nothing is lost."
)
USAGE_PAGE = "/settings/usage/"

NOTHING_KEPT = Kept()
TITLE_WORDS = 6
WORD = re.compile(r"[^\W\d_][\w’'-]{2,}")
SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|\n+")
# Words that carry no subject, in the languages most often met; a missing one only spoils a title.
_COMMON_WORDS = """
    the and for that this with have has had was were are you your mine our his her she him
    they them what when where which who why how not but can could would should will shall from
    about into than then there here just like very really some any all its it's i'm i've don't
    does did been being also please yes know think want make made get got going let one two
    out over because today tomorrow yesterday der die das und ist nicht ein eine ich mein
    meine mit auf für von dem den les des une est pas mais pour avec dans mon que qui por para
    con una los las del como
"""
COMMON = frozenset(_COMMON_WORDS.split())


def reply(
    surfaced: Sequence[Recalled],
    *,
    zone: tzinfo,
    notice: str,
    kept: Kept = NOTHING_KEPT,
    question: OpenQuestion | None = None,
    files: int = 0,
    said: Sequence[Said] = (),
    is_told: bool = False,
) -> str:
    """Markdown: why there is no real answer, what was recalled, with dates and sources.

    `kept` is what the person asked to remember in this turn, as it was stored; `question` what
    else there is to ask; `files` how many came with the message; `said` what the person has said
    of it in this part; `is_told`: they did not ask, but tell something that may be remembered.
    """
    parts = [notice]
    if files:
        parts.append(UNSEEN_FILE if files == 1 else UNSEEN_FILES)
    if kept.memory_ids:
        parts.append(HELD_BACK if kept.is_held_back else KEPT)
    if surfaced:
        parts.append(_quotes(surfaced, zone))
    if said:
        parts.append(_just_said(said, zone))
    elif not surfaced and not kept.memory_ids and not files:
        parts.append(f"{NOTHING} {LATER}" if is_told else NOTHING)
    if question is not None:
        parts.append(_asked(question))
    return "\n\n".join(parts)


def cap_reached(why: str) -> str:
    """The notice of an answer that no model gave because of the person's own cap."""
    return CAPPED.format(why=why.replace(USAGE_PAGE, f"[Usage]({USAGE_PAGE})"))


def _asked(question: OpenQuestion) -> str:
    older, newer = (_shortened(side.text) for side in (question.older, question.newer))
    return (
        f"One more thing, when you like: which is right?\n\n> {older}\n\nor\n\n> {newer}\n\n"
        "You can say so under [open questions](/memories/questions/)."
    )


def _quotes(surfaced: Sequence[Recalled], zone: tzinfo) -> str:
    lines = ["This is what came to mind:", ""]
    for item in surfaced[:OFFLINE_QUOTES]:
        source = item.sources[0] if item.sources else None
        said_at = source.said_at if source else item.created_at
        date = f"{said_at.astimezone(zone):%d %B %Y}".lstrip("0")
        where = f"[{date}](/?at={source.message_id})" if source else date
        lines += [f"> {' '.join(item.text.split())}", "", f"— {where}", ""]
    return "\n".join(lines).rstrip()


def _just_said(said: Sequence[Said], zone: tzinfo) -> str:
    lines = ["You told me earlier:", ""]
    for one in said:
        clock = f"{one.said_at.astimezone(zone):%H:%M}"
        lines += [f"> {_shortened(one.text)}", "", f"— [{clock}](/?at={one.message_id})", ""]
    return "\n".join(lines).rstrip()


def title(texts: Sequence[str]) -> str:
    """The most frequent telling words of the texts, in the order in which they first came."""
    words = [word for text in texts for word in WORD.findall(text)]
    counts = Counter(word.casefold() for word in words if word.casefold() not in COMMON)
    best = {word for word, _ in counts.most_common(TITLE_WORDS)}
    picked: dict[str, str] = {}
    for word in words:
        if word.casefold() in best:
            picked.setdefault(word.casefold(), word)
    return " ".join(picked.values()) or "A short exchange"


def trace(texts: Sequence[str], *, name: str, opened: datetime, files: Sequence[str] = ()) -> str:
    """Three to four sentences in MIRA's voice around the person's own words.

    `texts` are the person's messages in order; the sentences that share most words with the whole
    are taken, in order. `opened` is in the person's zone; `files` are the names of what was sent.
    """
    sentences = [
        part.strip() for text in texts for part in SENTENCE_END.split(text) if part.strip()
    ]
    day = f"{opened:%d %B %Y}".lstrip("0")
    sent = [f"{name} sent me {_listed(files)}."] if files else []
    if not sentences:
        if sent:
            return " ".join([f"On {day} I was with {name}.", *sent])
        return f"On {day} I was with {name}; nothing was said that I could keep."
    weights = Counter(
        word.casefold()
        for sentence in sentences
        for word in WORD.findall(sentence)
        if word.casefold() not in COMMON
    )
    ranked = sorted(range(len(sentences)), key=lambda i: (-_weight(sentences[i], weights), i))
    chosen = sorted(ranked[: OFFLINE_TRACE_SENTENCES - 1])
    quotes = [f"{name} said: “{_shortened(sentences[i])}”" for i in chosen]
    return " ".join([f"On {day} I talked with {name}.", *quotes, *sent])


def _listed(files: Sequence[str]) -> str:
    named = ", ".join(f"“{name}”" for name in files[:OFFLINE_FILES])
    more = len(files) - OFFLINE_FILES
    return f"{named} and {more} more" if more > 0 else named


def precis(texts: Sequence[str], *, name: str, opened: datetime) -> str:
    """Two sentences: when and with whom, and about what."""
    day = f"{opened:%d %B %Y}".lstrip("0")
    return f"On {day} I talked with {name}. It was about: {title(texts)}."


def complexity(message_count: int, characters: int) -> float:
    """0.5 small talk, 1, 2 or 3, from size alone; spec conversations 3.2."""
    if message_count <= 4 and characters < 1_000:
        return 0.5
    if message_count <= 10:
        return 1.0
    return 2.0 if message_count <= 30 else 3.0


def _weight(sentence: str, weights: Counter[str]) -> float:
    words = [word.casefold() for word in WORD.findall(sentence)]
    return sum(weights[word] for word in set(words)) / math.sqrt(1 + len(words))


def _shortened(sentence: str, limit: int = 240) -> str:
    flat = " ".join(sentence.split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"
