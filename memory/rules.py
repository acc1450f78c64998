"""Facts without a model: the person's own statements, kept in the person's own words.

A statement is what is left once questions, greetings, requests, code and crumbs are gone. The word
lists sharpen this for a few languages; a language they do not know loses nothing by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from memory import claims, dates, quoting, relative_dates, stakes
from memory.constants import RULE_FACTS_MAX, STATEMENT_MAX_CHARS, STATEMENT_MIN_WORDS
from memory.sentences import around, prose, sentences
from memory.storage import Fact
from memory.types import SourceMessage, SourceRef
from memory.voices import own_words


def _opening(words: str) -> re.Pattern[str]:
    return re.compile(rf"^\W*(?:{words})(?!\w)", re.IGNORECASE)


_QUESTION = _opening(
    "what|how|why|when|where|who|whose|which|(?:can|could|would|will|do|did|are|should) you"
    "|is there|are there|do i|did i|am i|should i|can i|could i|may i|wonder|i wonder"
    "|was|wie|warum|wieso|wann|wo|wer|welche[rs]?|kannst du|könntest du|weißt du|hast du"
    "|qu['’]est-ce|est-ce que|comment|pourquoi|quand|où|qui|quel(?:le)?s?|peux-tu|pouvez-vous"
    "|qué|cómo|por qué|cuándo|dónde|quién|cuál(?:es)?|puedes|podrías"
)
# German "was", "wo", "wer" and "wie" open English or German statements too ("Was a sailor once").
_REQUEST = _opening(
    "please|(?:just )?(?:tell|show|give|write|explain|help|find|make|list|translate|summari[sz]e"
    "|draft|check|fix|search|look up|remind|add|remove|delete|set|open|create|compare|suggest"
    "|recommend|describe|read|run|try|let['’]?s|let me|stop|go on|continue|imagine)"
    "|i(?:['’]d| would) like (?:you|to know|to ask)|i (?:want|need) (?:you|to know|to ask|help)"
    "|i have (?:a|another|one more) question|tell me"
    "|bitte|sag|zeig|schreib|erklär|hilf|such|mach|gib|übersetze?|fass|nenne?|erzähl"
    "|dis|dites|montre|écris|explique|aide|cherche|fais|donne|traduis|s['’]il te plaît"
    "|di|dime|muestra|muéstrame|escribe|explica|explícame|ayúdame|busca|haz|dame|traduce|por favor"
)
_TO_KEEP = _opening(
    "(?:please )?(?:remember|note|keep in mind|don['’]t forget|do not forget)"
    "|(?:bitte )?(?:merk dir|merke dir|denk dran|vergiss nicht)"
    "|retiens|souviens-toi|n['’]oublie pas|recuerda|no olvides"
)
_SMALL_TALK = _opening(
    "hi|hello|hey|good (?:morning|afternoon|evening|night)|thanks?|thank you|bye|goodbye|see you"
    "|ok(?:ay)?|yes|no|yeah|yep|nope|sure|great|cool|nice|wow|right|exactly|sorry|welcome"
    "|i see|i think so|i guess(?: so)?|i know|i understand|i agree|i don['’]t know|i['’]m sorry"
    "|hallo|guten (?:morgen|tag|abend)|danke|tschüss|ja|nein|genau|gut|super|ach so"
    "|bonjour|salut|bonsoir|merci|oui|non|d['’]accord|au revoir"
    "|hola|buenos días|buenas (?:tardes|noches)|gracias|sí|vale|adiós"
)
_SMALL_TALK_MAX_WORDS = 4
_VAGUE = _opening("that|this|it|those|these|there|here|das|dies|es|ça|c['’]est|cela|eso|esto")
_PRONOUN = _opening(
    "he|she|they|it|his|her|their|its|both|er|sie|es|ihr|ihre|sein|seine|beide"
    "|il|elle|ils|elles|son|sa|ses|leur|él|ella|ellos|ellas|su|sus"
)
_FIRST_PERSON = re.compile(
    r"(?<!\w)(?:i|my|mine|me|we|our|us|ich|mein\w*|mir|mich|wir|unser\w*|uns"
    r"|je|j['’]\w+|mon|ma|mes|moi|nous|notre|nos|yo|mi|mis|me|nosotr[oa]s|nuestr[oa]s?"
    r"|io|mio|mia|eu|meu|minha|ik|mijn|wij)(?!\w)",
    re.IGNORECASE,
)
_NAME_OR_NUMBER = re.compile(r"\d|(?<=[^\W\d_] )[^\W\d_a-zß-öø-ÿ][^\W\d_]+|(?<=, )[A-ZÀ-Þ]\w+")
_DECISION = re.compile(
    r"(?<!\w)(?:decided|chose|have chosen|opted|settled on|(?:will|going to) (?:go with|use|switch)"
    r"|going with|made up my mind|entschieden|beschlossen|décidé|choisi|decidido|decidí|elegido"
    r"|elegí)(?!\w)",
    re.IGNORECASE,
)
_PREFERENCE = re.compile(
    r"(?<!\w)(?:prefer\w*|favou?rite|(?<!would )(?<!['’]d )(?:like|love)|likes|loves|hate|hates"
    r"|dislikes?|enjoy|can['’]?t stand|lieblings\w*|mag|liebe|hasse|bevorzuge|(?:ess|trink|mach)e"
    r"(?: \w+)? (?:gern|lieber)|préfère|aime|adore|déteste|préférée?|prefiero|me gustan?"
    r"|me encantan?|odio|favorit[oa])(?!\w)",
    re.IGNORECASE,
)
_WIDE_SCRIPT = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WIDE_SIGNS_PER_WORD = 2  # scripts that put no space between words


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    text: str
    message: SourceMessage
    weight: int


def facts(messages: Sequence[SourceMessage], *, name: str, zone: ZoneInfo) -> list[Fact]:
    """What the person stated, in order; at most RULE_FACTS_MAX, those that say most of the person.

    Only messages of the person are read, and of those only what is the person's own: nothing that
    was pasted and no answer said back.
    """
    found = statements(messages)
    heaviest = sorted(range(len(found)), key=lambda index: (-found[index].weight, index))
    chosen = sorted(heaviest[:RULE_FACTS_MAX])
    return [_fact(found[index], name, zone) for index in chosen]


def statements(messages: Sequence[SourceMessage]) -> list[Statement]:
    """The person's own statements, in order."""
    answers: list[str] = []
    found: list[Statement] = []
    for message in messages:
        if message.role == "assistant":
            answers.append(message.text)
        else:
            found.extend(_statements(message, answers))
    return found


def is_statement(sentence: str) -> bool:
    """Whether the sentence tells something: no question, greeting, request or crumb."""
    if len(_counted_words(sentence)) < STATEMENT_MIN_WORDS or sentence.endswith((":", "?", "？")):
        return False
    if "?" in sentence[-4:] or sentence.startswith("¿"):
        return False
    if _TO_KEEP.match(sentence):
        return True
    if _REQUEST.match(sentence) or _QUESTION.match(sentence):
        return False
    words = len(_counted_words(sentence))
    if _SMALL_TALK.match(sentence) and words <= _SMALL_TALK_MAX_WORDS:
        return False
    return not _VAGUE.match(sentence) or _weight(sentence) > 0


def _statements(message: SourceMessage, answers: Sequence[str]) -> Iterator[Statement]:
    """The message's statements; one that opens with a pronoun stays with the one it leans on."""
    held = ""
    for sentence in sentences(own_words(prose(message.text), answers)):
        if not is_statement(sentence):
            if held:
                yield Statement(text=held, message=message, weight=_weight(held))
            held = ""
            continue
        joined = f"{held} {sentence}"
        if held and _PRONOUN.match(sentence) and len(joined) <= STATEMENT_MAX_CHARS:
            held = joined
            continue
        if held:
            yield Statement(text=held, message=message, weight=_weight(held))
        held = sentence[:STATEMENT_MAX_CHARS]
    if held:
        yield Statement(text=held, message=message, weight=_weight(held))


def _weight(sentence: str) -> int:
    patterns = (_TO_KEEP, _FIRST_PERSON, _NAME_OR_NUMBER, _DECISION, _PREFERENCE)
    return sum(bool(pattern.search(sentence)) for pattern in patterns)


def _counted_words(sentence: str) -> list[str]:
    wide = len(_WIDE_SCRIPT.findall(sentence)) // _WIDE_SIGNS_PER_WORD
    return sentence.split() + [""] * wide


def _fact(statement: Statement, name: str, zone: ZoneInfo) -> Fact:
    message = statement.message
    mentions = relative_dates.mentions(statement.text, message.said_at.astimezone(zone).date())
    days = {mention.on for mention in mentions}
    happens_at: datetime | None = dates.start_of(days.pop(), zone) if len(days) == 1 else None
    notes = [f"“{one.words}” is {dates.written(one.on)}" for one in mentions]
    return Fact(
        text=quoting.framed(name, statement.text, notes),
        memory_type=_type(statement.text),
        happens_at=happens_at,
        stakes=stakes.of(statement.text),
        claim=claims.claim(statement.text, name=name),
        sources=(
            SourceRef(
                message_id=message.message_id,
                segment_id=message.segment_id,
                sentence=statement.text,
                span=around(message.text, statement.text),
                said_at=message.said_at,
            ),
        ),
    )


def _type(sentence: str) -> str:
    if _DECISION.search(sentence):
        return "decision"
    return "preference" if _PREFERENCE.search(sentence) else "fact"
