"""Does the person ask to remember something, and what? In their own words, by rule (pure).

Read narrowly: "do you remember that …?" asks for a memory, it gives none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from memory import rules
from memory.sentences import prose, sentences
from memory.storage import Fact
from memory.types import SourceMessage
from memory.voices import own_words

_LEAD = (
    r"(?:(?:hey|hi|hello|ok(?:ay)?|so|and|also|oh|by the way|mira|please|kindly|just|always"
    r"|hallo|und|also|ach|bitte|übrigens|et|s['’]il te pla[iî]t|s['’]il vous pla[iî]t|au fait"
    r"|hola|y|oye|por favor)[\s,:!]+)*"
)
_VERB = (
    # English
    r"remember|don['’]t forget|do not forget|never forget|keep in mind|bear in mind"
    r"|make a (?:mental )?note|memori[sz]e"
    # German
    r"|merke? dir|merken sie sich|denke? (?:bitte )?(?:dran|daran)|vergiss (?:bitte )?nicht"
    r"|vergessen sie (?:bitte )?nicht|behalte? (?:bitte )?(?:im kopf|in erinnerung)"
    # French
    r"|souviens[- ]toi|souvenez[- ]vous|rappelle[- ]toi|rappelez[- ]vous|retiens|retenez"
    r"|n['’]oublie[sz]? pas|garde[sz]? en (?:tête|mémoire)"
    # Spanish
    r"|recuerda|recuerde|acuérdate|no (?:te )?olvides|no olvide|ten en cuenta|tenga en cuenta"
)
# Asked as a question, and still an order.
_POLITE = (
    r"(?:can|could|would|will) you (?:please |kindly )?(?:remember|keep in mind|bear in mind"
    r"|make a note|memori[sz]e)"
    r"|i(?:['’]d like| would like| want| need) you to (?:please )?(?:always )?remember"
    r"|(?:kannst|könntest|würdest) du dir (?:bitte )?merken"
    r"|(?:peux|pourrais)[- ]tu (?:te souvenir|retenir|te rappeler)"
    r"|(?:puedes|podrías) (?:recordar|acordarte)"
)
_THAT = (
    r"(?:[\s,:–-]+(?:that|this|it|the following|of|for me|please|bitte|dass|das|dies(?:es)?|daran"
    r"|folgendes|bien|ceci|cela|ça|que|qu['’]|de|esto|eso|lo siguiente)(?!\w))*"
)
_ORDER = re.compile(rf"\W*{_LEAD}(?:{_VERB})(?!\w)", re.IGNORECASE)
_POLITE_ORDER = re.compile(rf"\W*{_LEAD}(?P<order>{_POLITE})(?!\w)", re.IGNORECASE)
_BARE = re.compile(
    rf"\W*{_LEAD}(?:{_VERB}|{_POLITE}|merke? dir (?:das|dies)|vergiss das (?:bitte )?nicht"
    rf"|souviens[- ]t['’]en|retiens[- ]le|ne l['’]oublie pas|recuérdalo|no lo olvides){_THAT}\W*",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    r"[,;.–-]\s*(?:and |so |und |et |y )?(?:please |bitte |por favor |s['’]il te pla[iî]t,? )?"
    r"(?:(?:remember|don['’]t forget|do not forget|keep in mind|bear in mind)"
    r"(?: (?:that|this|it))?(?: for me)?(?:,? please)?"
    r"|merke? dir (?:das|dies)(?: bitte)?|vergiss (?:das )?(?:bitte )?nicht"
    r"|souviens[- ]t['’]en|retiens[- ]le|(?:ne l['’]oublie|n['’]oublie) pas"
    r"|recuérdalo|no lo olvides)[.!\s]*$",
    re.IGNORECASE,
)
# "Remember when we …", "remember the time …", "remember me": talk of old times, or a greeting.
_OLD_TIMES = re.compile(
    rf"\W*{_LEAD}(?:remember|recuerda|souviens[- ]toi)(?: (?:when|how|what|where|who|why|me|us|back"
    r"|cuando|cómo|quand|comment)|(?: of)? (?:the|that) (?:time|day|night|evening|summer|trip))"
    r"(?!\w)",
    re.IGNORECASE,
)


def is_asked(text: str) -> bool:
    """Whether a message of the person asks to remember something that it says."""
    return bool(_orders(_sentences(text)))


def facts(message: SourceMessage, *, name: str, zone: ZoneInfo) -> list[Fact]:
    """What the message asks to remember, as rules.facts would keep it; [] if it asks for nothing.

    "Remember this" alone stands for all else that the message states.
    """
    said = _sentences(message.text)
    orders = _orders(said)
    if not orders:
        return []
    stated = [
        fact
        for fact in rules.facts([message], name=name, zone=zone)
        if not _BARE.fullmatch(fact.sources[0].sentence)
    ]
    if any(_BARE.fullmatch(order) for order in orders):
        return stated
    found: list[Fact] = []
    for order in orders:
        held = [fact for fact in stated if fact.sources[0].sentence.startswith(order[:100])]
        found.extend(held or rules.facts([_plainly(message, order)], name=name, zone=zone))
    return found


def _sentences(text: str) -> list[str]:
    return sentences(own_words(prose(text)))


def _orders(said: Sequence[str]) -> list[str]:
    return [sentence for sentence in said if _is_order(sentence)]


def _is_order(sentence: str) -> bool:
    if _POLITE_ORDER.match(sentence):
        return True
    if "?" in sentence[-4:] or "¿" in sentence or "？" in sentence or _OLD_TIMES.match(sentence):
        return False
    return bool(_ORDER.match(sentence) or _TRAILING.search(sentence))


def _plainly(message: SourceMessage, order: str) -> SourceMessage:
    """The message as if it held the order alone, from its verb on."""
    match = _POLITE_ORDER.match(order)
    plain = f"{order[match.end() :].strip(' ,:')}" if match else order
    plain = re.sub(rf"\A{_LEAD}", "", plain, flags=re.IGNORECASE)
    return replace(message, text=re.sub(r"\A(?:that|dass|que)\s+|\s*\?+\Z", "", plain))
