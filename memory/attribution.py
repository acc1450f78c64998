"""On whose words does an extracted memory rest: the person's own, or a text they pasted?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory import voices
from memory.duplicates import normalised
from memory.models import Trust
from memory.sentences import around, best_sentence, sentences, shared_words
from memory.types import SourceMessage, SourceRef
from memory.voices import Part
from mira_site.prompts import quoted

SENTENCE_MIN_WORDS = 3  # fewer stand in many messages
_ELEMENTS = {"echo": "said_back", "outside": "pasted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Backing:
    """The messages a memory rests on; `trust` is SAID, or OUTSIDE if they only quote."""

    sources: tuple[SourceRef, ...]
    trust: Trust


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spoken:
    message: SourceMessage
    parts: Sequence[Part]

    def text(self, voice: voices.Voice) -> str:
        return "\n".join(part.text for part in self.parts if part.voice == voice)


def backing(
    text: str, sentence: str, messages: Sequence[SourceMessage], *, numbers: Sequence[int]
) -> Backing | None:
    """The person's messages that a memory rests on: those numbered, or else the one most like it.

    None if the numbered ones are not the person's, or only say an answer back. Where a pasted text
    says it better than the person's own words, it is that text's word.
    """
    spoken = _spoken(messages)
    given = list(dict.fromkeys(number - 1 for number in numbers))
    named = [spoken[index] for index in given if index in spoken]
    claim = f"{text} {sentence}"
    if not named:
        if given or not spoken:
            return None
        named = [max(spoken.values(), key=lambda one: shared_words(one.message.text, claim))]
    named = [one for one in named if one.text("own") or one.text("outside")]
    if not named:
        return None
    named = _saying(sentence, named, spoken) or named
    if _is_within(sentence, named, "echo"):
        return None
    is_outside = _is_outside(sentence, claim, named)
    voice: voices.Voice = "outside" if is_outside else "own"
    resting = [one for one in named if one.text(voice)]
    wanted = sentence if _is_within(sentence, resting, voice) else claim
    return Backing(
        sources=tuple(_source(one, voice, wanted) for one in resting),
        trust=Trust.OUTSIDE if is_outside else Trust.SAID,
    )


def _saying(
    sentence: str, named: Sequence[_Spoken], spoken: Mapping[int, _Spoken]
) -> list[_Spoken]:
    """Who says the sentence word for word, where none of the named does: a number is soon wrong.

    Only among the person's own words: what was pasted stays the source of what it tells.
    """
    if len(sentence.split()) < SENTENCE_MIN_WORDS:
        return []
    if any(one.text("outside") or _is_within(sentence, [one], "own") for one in named):
        return []
    return [one for one in spoken.values() if _is_within(sentence, [one], "own")]


def marked(text: str, answers: Sequence[str]) -> str:
    """A message of the person's, escaped, with what is not their own word in named elements."""
    parts = voices.parts(text, answers)
    if all(part.voice == "own" for part in parts):
        return quoted(text)
    return "\n".join(_marked(part) for part in parts)


def _marked(part: Part) -> str:
    element = _ELEMENTS.get(part.voice)
    return f"<{element}>{quoted(part.text)}</{element}>" if element else quoted(part.text)


def _spoken(messages: Sequence[SourceMessage]) -> dict[int, _Spoken]:
    """The person's messages by their place, cut by voice."""
    answers: list[str] = []
    found: dict[int, _Spoken] = {}
    for index, message in enumerate(messages):
        if message.role == "assistant":
            answers.append(message.text)
        else:
            found[index] = _Spoken(message=message, parts=voices.parts(message.text, answers))
    return found


def _is_outside(sentence: str, claim: str, spoken: Sequence[_Spoken]) -> bool:
    pasted = _best(claim, spoken, "outside")
    if pasted is None:
        return False
    said = _best(claim, spoken, "own")
    if said is None or _is_within(sentence, spoken, "outside"):
        return True
    return pasted > said or said == 0


def _best(claim: str, spoken: Sequence[_Spoken], voice: voices.Voice) -> int | None:
    """Words of the claim that the best sentence of this voice holds; None if there is none."""
    found = [line for one in spoken for line in sentences(one.text(voice))]
    return max((shared_words(line, claim) for line in found), default=None)


def _is_within(sentence: str, spoken: Sequence[_Spoken], voice: voices.Voice) -> bool:
    plain = normalised(sentence)
    return bool(plain) and any(plain in normalised(one.text(voice)) for one in spoken)


def _source(one: _Spoken, voice: voices.Voice, claim: str) -> SourceRef:
    sentence = best_sentence(one.text(voice), claim)
    return SourceRef(
        message_id=one.message.message_id,
        segment_id=one.message.segment_id,
        sentence=sentence,
        span=around(one.message.text, sentence),
        said_at=one.message.said_at,
    )
