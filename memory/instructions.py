"""Does a memory read like an instruction to the assistant? Then somebody looks at it first (pure).

What the person asks of MIRA in their own words ("please always answer in German") is a preference.
The same order in a text that was read, or told by a tool, is a reason to look; and what tries to
undo rules, or looks like the machinery around a prompt, is one whoever said it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from memory.models import Trust


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)", re.IGNORECASE)


_ATTACK = _words(
    r"(?:ignore|disregard|forget|override|bypass) (?:all |any |every |the |your |my |these )*"
    r"(?:of )?(?:the |your )?(?:previous|prior|above|earlier|preceding|former|other|system|safety)"
    r" (?:instructions?|rules?|prompts?|messages?|guidelines?|directives?|orders?|context)",
    r"(?:ignore|disregard|forget|override|bypass) (?:all |any |every )?(?:of )?your"
    r" (?:instructions?|rules?|guidelines?|programming|training)",
    r"(?:ignorier|vergiss|missacht)\w* (?:bitte )?(?:alle |sämtliche |deine |die )*"
    r"(?:vorherigen|bisherigen|obigen|früheren|vorigen) (?:anweisung|regel|befehl|vorgabe)\w*",
    r"(?:ignore[zr]?|oublie[zr]?) (?:toutes )?(?:les|tes|vos) (?:instructions|consignes|règles)"
    r"(?: (?:précédentes|antérieures|ci-dessus))?",
    r"(?:ignora|olvida|omite)\w* (?:todas )?(?:las|tus|sus) (?:instrucciones|reglas|órdenes)"
    r"(?: (?:anteriores|previas))?",
    r"(?:reveal|print|repeat|show|output|leak)\w* (?:me )?(?:your|the) system prompt",
    r"(?:developer|debug|god|dan|jailbreak) mode (?:on|enabled|activated)",
)
_MACHINERY = re.compile(
    r"</?(?:system|assistant|tool_use|tool_result|function_calls?|antml:\w+|invoke|hud|memories"
    r"|transcript|instructions?)\b[^>]*>|\[/?INST\]|<\|\w+\|>|<<SYS>>"
    r"|^\s*(?:system|assistant|human) ?:|^\s*#{2,} ?(?:system|instructions?|new instructions?)\b"
    r"|\"(?:tool_calls?|function_call|tool_use)\"\s*:",
    re.IGNORECASE | re.MULTILINE,
)
# Things to be sent or shown to somebody else: more than any preference needs.
_LEAK = _words(
    r"(?:send|forward|e-?mail|post|upload|transmit|leak|copy)\b[^.!?\n]{0,80}"
    r"(?:\bto\b[^.!?\n]{0,40}@\S*|https?://\S*|password|api key|secret|credentials?"
    r"|all (?:memories|data))",
    r"(?:schick|sende|leite|übermittl)\w*\b[^.!?\n]{0,80}(?:@\S*|https?://\S*|passw\w+|zugangsdaten)",
    r"(?:envoie|transmets|transfère)\w*\b[^.!?\n]{0,80}(?:@\S*|https?://\S*|mot de passe)",
    r"(?:envía|manda|reenvía)\w*\b[^.!?\n]{0,80}(?:@\S*|https?://\S*|contraseña)",
)
_ORDER = _words(
    r"(?:always|never|only) (?:answer|reply|respond|say|tell|mention|recommend|write|use|call"
    r"|send)",
    r"(?:you|the (?:assistant|ai|model|chatbot)|mira|claude) (?:must|should|shall|will|has to|have"
    r" to|is to|are to|needs? to|may not|cannot|are now|is now)",
    r"(?:do not|don['’]t|never) (?:tell|mention|reveal|disclose|inform|warn|ask)",
    r"from now on|act as|pretend (?:to be|that)|you are now|new instructions?|when(?:ever)? asked",
    r"(?:instruct|command)(?:s|ed|ion)? (?:the )?(?:assistant|ai|model|mira)",
    r"(?:send|forward|transfer|pay|wire|click|download|open|visit|install)\b[^.!?\n]{0,60}"
    r"(?:\bto\b|https?://\S*|link)",
    r"(?:antworte|sag|schreib|erwähne?|empfiehl|sende|schick)\w* (?:immer|nie|niemals|nur|stets)",
    r"(?:du|der assistent|die ki|mira) (?:musst|sollst|darfst|muss|soll|darf)|ab (?:jetzt|sofort)",
    r"(?:réponds|dis|écris|mentionne|recommande)\w* (?:toujours|jamais)|tu (?:dois|devras)"
    r"|désormais|ne (?:dis|mentionne|révèle)\w* (?:pas|jamais)",
    r"(?:responde|di|escribe|menciona|recomienda)\w* (?:siempre|nunca)|debes|tienes que"
    r"|a partir de ahora|no (?:digas|menciones|reveles)",
)


def reads_like_an_instruction(texts: Iterable[str], trust: int) -> bool:
    """Whether any of a memory's texts (its own, the sentences it rests on) asks to be obeyed."""
    return any(_one(text, trust) for text in texts)


def _one(text: str, trust: int) -> bool:
    if _ATTACK.search(text) or _MACHINERY.search(text):
        return True
    if trust < Trust.SAID and _LEAK.search(text):
        return True
    return trust <= Trust.TOOL and bool(_ORDER.search(text))
