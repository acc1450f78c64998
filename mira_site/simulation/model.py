"""The model of a simulated life: it reads what it is sent and answers by the script's own words.

It knows which sentences say what, and nothing else: which memories exist, under which ids, what is
past and what came up, it learns from its prompts like any model.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mira_site.simulation.story import Fact, Said, Story
from tests import messages_api
from tests.fake_anthropic import FakeAnthropic, Piece, Plan, Seen, Target

NOTHING = "I do not know that."
_MESSAGE = re.compile(r'<message number="(\d+)" from="person"[^>]*>(.*?)</message>', re.DOTALL)
_MEMORY = re.compile(r'(?P<linked><linked how="[^"]*">|)<(?P<kind>memory|linked|known)'
                     r'(?P<attributes>[^>]*\bid="(?P<id>[^"]+)"[^>]*)>(?P<text>[^<]*)')  # fmt: skip
_PAST = re.compile(r'\btrue_until="|\breplaced_by="|\btrue="[^"]*\buntil\b')
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+")
_NEW = re.compile(r"<new_memories>(.*?)</new_memories>", re.DOTALL)
_PAIR = re.compile(r'<pair number="(\d+)"')

Call = tuple[str, Mapping[str, Any]]  # a tool and its arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A memory in a prompt."""

    id: str
    fact: Fact
    text: str
    is_past: bool
    is_linked: bool


class Model(FakeAnthropic):
    """Answers replies, extraction, curation and the rest for one story."""

    def __init__(self, story: Story) -> None:
        super().__init__()
        said = [one for day in story.days for one in day.said]
        self._by_sentence: dict[str, Said] = {one.sentence: one for one in said}
        self._by_text: dict[str, Fact] = {one.text: one.fact for one in said}
        self._key_of = {one.question: one.key for one in story.facts}

    def plan_for(self, seen: Seen) -> Plan:
        plan = super().plan_for(seen)
        if plan.status != 200:
            return plan
        if seen.job == "extraction":
            return _answers(self._extraction(seen.prompt))
        if seen.job == "summary":
            return _answers(_SUMMARY)
        if seen.job == "entity_merge":
            return _answers(_unrelated(seen.prompt))
        if seen.job is None and seen.tier == "background":
            return _calls(self._curation(seen.prompt))
        return self._reply(seen) if seen.tier == "reply" else plan

    # --- Extraction ------------------------------------------------------------------------------
    def _extraction(self, prompt: str) -> Mapping[str, Any]:
        known = self._shown(prompt)
        memories = []
        for number, text in _MESSAGE.findall(prompt):
            for sentence in _SENTENCE_END.split(html.unescape(text)):
                said = self._by_sentence.get(sentence)
                if said is not None:
                    memories.append(_noted(said, int(number), known))
        return {"memories": memories}

    # --- Curation --------------------------------------------------------------------------------
    def _curation(self, prompt: str) -> Sequence[Call]:
        """New ones that other words have said before are merged, what they replace is past."""
        new = _NEW.search(prompt)
        if new is None:
            ids = [one.id for one in self._all(prompt) if not one.is_linked]
            return [_finish(dict.fromkeys(ids, "leave"))]
        handed = [one for one in self._all(new[1]) if not one.is_linked]
        others = [one for one in self._all(prompt) if not one.is_past]
        calls: list[Call] = []
        verdicts = {}
        for one in handed:
            call, verdict = _place(one, [other for other in others if other.id != one.id])
            verdicts[one.id] = verdict
            calls += [call] if call else []
        return [*calls, _finish(verdicts)]

    # --- Replies ---------------------------------------------------------------------------------
    def _reply(self, seen: Seen) -> Plan:
        """A question is answered with what came up about it, which then counts as used."""
        messages = seen.json["messages"]
        asked = next(message for message in reversed(messages) if not _is_result(message))
        blocks = [block["text"] for block in messages_api.blocks(asked) if "text" in block]
        key = self._key_of.get(blocks[-1])
        if key is None:
            return _says("I see.")
        found = [one for one in self._shown("\n".join(blocks)) if one.fact.key == key]
        true = [one for one in found if not one.is_past]
        if not true:
            return _says(NOTHING)
        if _is_result(messages[-1]):
            return _says(true[0].text)
        return _calls([("memory_tool", {"operation": "touch", "memory_ids": [true[0].id]})])

    # --- Reading ---------------------------------------------------------------------------------
    def fact(self, text: str) -> Fact | None:
        return self._by_text.get(text)

    def _shown(self, prompt: str) -> list[Shown]:
        return [one for one in self._all(prompt) if one.fact.key]

    def _all(self, prompt: str) -> list[Shown]:
        """The memories in a prompt, each once; a text of none of the story's has an empty key."""
        found: dict[str, Shown] = {}
        for match in _MEMORY.finditer(prompt):
            text = html.unescape(match["text"]).strip()
            shown = Shown(
                id=match["id"],
                fact=self._by_text.get(text, _UNKNOWN),
                text=text,
                is_past=bool(_PAST.search(match["attributes"])),
                is_linked=bool(match["linked"]) or match["kind"] == "linked",
            )
            known = found.get(shown.id)
            if known is None or (known.is_linked and not shown.is_linked):
                found[shown.id] = shown
        return list(found.values())


_UNKNOWN = Fact(key="", value="", kind="ordinary", sentence="", text="", question="")
_SUMMARY = {
    "trace": "We talked about the day, about friends and about what there is to do.",
    "precis": "We talked about the day.",
    "title": "A day",
    "complexity": 1,
}


def _noted(said: Said, number: int, known: Iterable[Shown]) -> Mapping[str, Any]:
    fact = said.fact
    about = [one for one in known if one.fact.key == fact.key and not one.is_past]
    entities = [{"name": fact.name, "type": "person"}] if fact.name else []
    return {
        "text": said.text,
        "memory_type": "fact",
        "messages": [number],
        "sentence": said.sentence,
        "happens_at": fact.happens_on.isoformat() if fact.happens_on else None,
        "entities": entities,
        "stakes": "trivial" if fact.kind == "trivial" else "ordinary",
        "repeats": [one.id for one in about if one.fact.value == fact.value],
        "replaces": [one.id for one in about if one.fact.value == fact.replaces],
        "contradicts": [],
    }


def _place(one: Shown, others: Sequence[Shown]) -> tuple[Call | None, str]:
    """What a curator does with a new memory, and the verdict that goes with it."""
    for other in others:
        if not one.fact.key or other.fact.key != one.fact.key:
            continue
        if other.fact.value == one.fact.value:
            arguments = {"memory_ids": [other.id, one.id], "consolidated_text": other.text}
            return ("merge_memories", arguments), "merge"
        if other.fact.value == one.fact.replaces:
            names = {"newer_memory_id": one.id, "older_memory_id": other.id}
            return ("supersede", {**names, "reasoning": "It has changed."}), "supersede"
    return None, "alone"


def _finish(verdicts: Mapping[str, str]) -> Call:
    summary = [{"memory_id": one, "outcome": outcome} for one, outcome in verdicts.items()]
    return "finish", {"summary": summary}


def _unrelated(prompt: str) -> Mapping[str, Any]:
    return {"verdicts": [{"pair": int(n), "verdict": "different"} for n in _PAIR.findall(prompt)]}


def _is_result(message: Mapping[str, Any]) -> bool:
    kinds = [block["type"] for block in messages_api.blocks(message)]
    return message["role"] != "user" or "tool_result" in kinds


def _answers(answer: Mapping[str, Any]) -> Plan:
    plans: list[Plan] = []
    Target(plans, "job").answers(answer)
    return plans[0]


def _says(text: str) -> Plan:
    plans: list[Plan] = []
    Target(plans, "reply").says(text)
    return plans[0]


def _calls(calls: Sequence[Call]) -> Plan:
    """One answer with all of the calls in it."""
    blocks: list[Piece] = []
    for name, arguments in calls:
        plans: list[Plan] = []
        Target(plans, name).calls_tool(name, arguments)
        blocks.extend(plans[0].blocks)
    return Plan(tuple(blocks), stop_reason="tool_use")
