"""Is a sentence an order to remember what it says? And what it says without the order (pure).

Read narrowly: "do you remember that …?" asks for a memory, it gives none.
"""

from __future__ import annotations

import re

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
_CONNECTED = re.compile(rf"\A{_THAT}[\s,:–-]*", re.IGNORECASE)
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


def is_order(sentence: str) -> bool:
    if _POLITE_ORDER.match(sentence):
        return True
    if "?" in sentence[-4:] or "¿" in sentence or "？" in sentence or _OLD_TIMES.match(sentence):
        return False
    return bool(_ORDER.match(sentence) or _TRAILING.search(sentence))


def is_bare(sentence: str) -> bool:
    """Whether it is an order and nothing else: "Please remember this." """
    return bool(_BARE.fullmatch(sentence))


def without(text: str) -> str:
    """The text without its order: "my code is 4417" of "Remember that my code is 4417"."""
    match = _POLITE_ORDER.match(text) or _ORDER.match(text)
    if match is None or _OLD_TIMES.match(text):
        return _TRAILING.sub(".", text)
    rest = _CONNECTED.sub("", text[match.end() :])
    return rest.rstrip(" ?？") if _POLITE_ORDER.match(text) else rest
