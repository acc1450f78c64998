"""What to search for before an answer, by rule: a few short phrases from the last messages (pure).

"And when is hers?" finds nothing by itself, and a long message finds everything a little: so the
newest message is searched for whole, by its most telling sentences, and together with what it may
refer back to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from conversations.constants import (
    LONG_MESSAGE_CHARS,
    PHRASE_SENTENCES,
    PHRASES_MAX,
    REFERRED_NAMES,
    REFERRED_TURNS,
    REFERRED_WORDS,
)
from conversations.models import Message
from conversations.offline import COMMON, WORD
from memory import selectors as memory

# Words that point at something said before, in the languages most often met.
_POINTS_BACK = re.compile(
    r"(?<!\w)(?:he|him|his|she|hers?|it|its|they|them|theirs?|this|that|these|those|there|then|one"
    r"|same|both|either|such|so|too|else|again|another|other|more|why|how come|what about|how about"
    r"|er|ihn|ihm|sein\w*|sie|ihr\w*|es|das|dies\w*|jene\w*|dort|da|damals|davon|daran|darüber"
    r"|dazu|damit|wieso|warum|il|elle|ils|elles|lui|leur|ça|cela|ceci|celui|celle|y|en|là|él|ella"
    r"|ellos|ellas|eso|esto|ese|esa|allí|ahí|le|les|lo|la)(?!\w)"
    r"|\A\W*(?:and|or|but|und|oder|aber|et|ou|mais|y|o|pero)(?!\w)",
    re.IGNORECASE,
)
# Words that open what is asked of somebody, and are not called so.
_OPENING_WORDS = """
    add ask bad best big bravo bye check cheers close compare congrats congratulations consider
    count define describe draft draw explain find fine fix forget give glad good goodbye great
    happy hear hello help hey hi hold imagine keep list long look message new nice note old open
    pick picture plan quick quote read remind repeat right rewrite say send short show small sorry
    start stop suggest suppose sure take tell thank thanks translate try turn update use wait
    welcome wish wonderful write wrong
    danke erklär erkläre erzähl erzähle finde gib grüezi guten gute hallo hilf lies nenne nimm
    prima schick schreib schreibe schön servus sag sage tschüss vergiss zeig zeige
    aide bonjour bonsoir donne dis explique merci montre salut trouve écris
    adiós ayuda buenas buenos cuenta dime explica gracias hola muestra
"""
_NO_NAMES = frozenset(_OPENING_WORDS.split())


def queries(history: Sequence[Message]) -> list[str]:
    """Phrases for the newest message, the last of `history`, the most telling first."""
    newest = history[-1].text.strip()
    phrases = [newest]
    if context := _with_context(newest, history[:-1]):
        phrases.append(context)
    phrases.extend(_telling_sentences(newest))
    return list(dict.fromkeys(filter(None, phrases)))[:PHRASES_MAX]


def names(history: Sequence[Message]) -> list[str]:
    """Names in the newest message, and if it points back, those just spoken of."""
    newest = history[-1].text
    before = _names_before(history[:-1]) if points_back(newest) else []
    sure = memory.names_in(newest)
    asked = [one for one in memory.names_asked_for(newest) if one in sure or _may_be_name(one)]
    return list(dict.fromkeys([*asked, *before]))


def _may_be_name(word: str) -> bool:
    folded = word.casefold()
    return folded not in _NO_NAMES and folded not in COMMON


def points_back(text: str) -> bool:
    """Whether the text hardly stands alone: no word of it tells, or one points at what was said."""
    return not telling(text) or bool(_POINTS_BACK.search(text))


def telling(text: str) -> list[str]:
    """The words that carry the subject, as written, each once whatever its case."""
    words = {word.casefold(): word for word in WORD.findall(text)}
    return [word for folded, word in words.items() if folded not in COMMON]


def _telling_sentences(text: str) -> list[str]:
    """The sentences of a long message with most telling words, in their order."""
    if len(text) < LONG_MESSAGE_CHARS:
        return []
    sentences = memory.sentences(text)
    if len(sentences) < 2:
        return []
    places = sorted(
        range(len(sentences)), key=lambda place: (-len(telling(sentences[place])), place)
    )
    return [sentences[place] for place in sorted(places[:PHRASE_SENTENCES])]


def _with_context(newest: str, before: Sequence[Message]) -> str:
    """The newest message behind what it may refer back to, if it does."""
    if not before or not points_back(newest):
        return ""
    targets = _names_before(before)
    words = [word for message in reversed(_recent(before)) for word in telling(message.text)]
    said = {word.casefold() for word in telling(newest)}
    joined: dict[str, str] = {}
    for word in (*targets, *words):
        if word.casefold() not in said:
            joined.setdefault(word.casefold(), word)
    referred = " ".join(list(joined.values())[:REFERRED_WORDS])
    return f"{referred} {newest}" if referred else ""


def _recent(before: Sequence[Message]) -> list[Message]:
    """The last messages of the person, in order; what was answered is not the person's word."""
    return [one for one in before if one.role == Message.Role.USER][-REFERRED_TURNS:]


def _names_before(before: Sequence[Message]) -> list[str]:
    """Names in the last messages of both, the latest first."""
    latest = [*reversed(before[-2 * REFERRED_TURNS :])]
    found = (name for message in latest for name in memory.names_in(message.text))
    return list(dict.fromkeys(found))[:REFERRED_NAMES]
