"""Memories as a prompt carries them: escaped, labelled, dated, within a budget of tokens.

Dates are absolute and the person's own: relative ones would be wrong tomorrow. What was not said by
the person, is no longer true or is disputed says so on its own element.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from memory.dates import day
from memory.past import span
from memory.types import ContextItem, LinkedMemory, MemoryView, Mode, RecallContext, Recalled
from mira_site import tokens
from mira_site.prompts import quoted

CONTEXT_OPENING = "<memories>"
CONTEXT_CLOSING = "</memories>"
RELEVANT = 0.75  # from here on an element says how relevant it is; spec memory 7.8


def element(memory: Recalled, *, zone: ZoneInfo) -> str:
    """One memory with its notes and with one line for each that is linked to it."""
    attributes = _attributes(memory, zone)
    relevance = memory.why.parts.relevance
    if relevance > RELEVANT:
        attributes["relevance"] = f"{relevance:.0%}"
    inside = [f'<note added="{day(note.added_at, zone)}">{quoted(note.text)}</note>'
              for note in memory.notes]  # fmt: skip
    inside += [_linked(one, zone) for one in memory.linked]
    opening = f"<memory{_written(attributes)}>{quoted(memory.text)}"
    return "\n".join([opening, *inside, "</memory>"]) if inside else f"{opening}</memory>"


def _linked(memory: LinkedMemory, zone: ZoneInfo) -> str:
    attributes = {"how": memory.link_type, **_attributes(memory, zone)}
    if memory.bond:
        attributes["bond"] = memory.bond
    return f"<linked{_written(attributes)}>{quoted(memory.text)}</linked>"


def _attributes(memory: MemoryView, zone: ZoneInfo) -> dict[str, str]:
    said_at = memory.sources[-1].said_at if memory.sources else memory.created_at
    given = {
        "id": memory.short_id,
        "said_on": day(said_at, zone),
        "happens": _moment(memory.happens_at, zone),
        "holds_until": _moment(memory.expires_at, zone),
        "true": span(memory.valid_from, memory.valid_until, zone),
        "replaced_by": ", ".join(one.hex[:8] for one in memory.replaced_by),
        "origin": memory.origin,
        "undecided_against": ", ".join(one.hex[:8] for one in memory.disputed_by),
    }
    return {name: value for name, value in given.items() if value}


def _moment(moment: datetime | None, zone: ZoneInfo) -> str:
    return f"{day(moment, zone)}, {moment.astimezone(zone):%H:%M}" if moment else ""


def _written(attributes: dict[str, str]) -> str:
    return "".join(f' {name}="{quoted(value)}"' for name, value in attributes.items())


def context(memories: Sequence[Recalled], *, budget_tokens: int, zone: ZoneInfo) -> RecallContext:
    """The memories in their order, as many as fit.

    One that no longer fits is left out and a shorter one may follow.
    """
    frame = tokens.estimate(f"{CONTEXT_OPENING}\n{CONTEXT_CLOSING}\n")
    left = budget_tokens - frame
    items: list[ContextItem] = []
    for memory in memories:
        text = element(memory, zone=zone)
        cost = tokens.estimate(text + "\n")
        if cost <= left:
            left -= cost
            items.append(ContextItem(memory=memory, mode=Mode.VERBATIM, text=text, tokens=cost))
    if not items:
        return RecallContext(text="", tokens=0, budget_tokens=budget_tokens, items=())
    lines = [CONTEXT_OPENING, *(item.text for item in items), CONTEXT_CLOSING]
    whole = "\n".join(lines)
    return RecallContext(
        text=whole, tokens=tokens.estimate(whole), budget_tokens=budget_tokens, items=tuple(items)
    )
