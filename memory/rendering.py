"""Memories as a prompt carries them: escaped, labelled, dated, in up to four levels of detail.

Dates are absolute and the person's own: relative ones would be wrong tomorrow. What was not said by
the person, is no longer true, is disputed or reads like an instruction says so on its own element.
docs/contexts.md shows every form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from memory import fingerprints, instructions, short_ids
from memory.dates import day
from memory.models import Trust
from memory.past import span
from memory.types import LinkedMemory, MemoryView, Mode, Recalled
from mira_site import tokens
from mira_site.prompts import quoted

OPENING = "<memories>"
CLOSING = "</memories>"
RELEVANT = 0.5  # above it an element says how likely it is needed; spec memory 7.8
HEADER_KEEPS = 0.05  # of a memory; spec recall 3.4
EXCERPT_KEEPS = 0.7  # of what is wanted of it: docs/contexts.md
_TRUST_OF = {one.label: one for one in Trust}


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A memory in one mode: `shown` without its element, `text` within it. `fidelity` is the share
    of the memory that is kept; `tokens` count the end of its line too."""

    mode: Mode
    shown: str
    text: str
    fidelity: float
    tokens: int


def forms(
    memory: Recalled,
    *,
    zone: ZoneInfo,
    shows_wing: bool = False,
) -> tuple[Form, ...]:
    """The memory in each mode that is worth its tokens, from the least to the most.

    They stand under the line of their day (`heading`) and so carry no date.
    """
    attributes = _attributes(memory, zone, dated=False, wing=shows_wing)
    full = _form(Mode.VERBATIM, memory.text, _full(memory, zone, attributes), fidelity=1.0)
    found = [full]
    # What costs as much as a fuller form, or tells nothing, is of no use.
    for shorter in (_excerpt, _fingerprint):
        form = shorter(memory, attributes, below=found[0].tokens)
        if form is not None:
            found.insert(0, form)
    header = _header(memory, zone, wing=shows_wing)
    if header.tokens < found[0].tokens:
        found.insert(0, header)
    return tuple(found)


def _form(mode: Mode, shown: str, text: str, *, fidelity: float) -> Form:
    return Form(mode=mode, shown=shown, text=text, fidelity=fidelity, tokens=line_tokens(text))


def line_tokens(text: str) -> int:
    """What a line of a context costs."""
    return tokens.estimate(text + "\n")


def heading(moment: datetime, zone: ZoneInfo) -> str:
    """The line above what was said on one day."""
    return f"{day(moment, zone)}:"


# --- The modes ---------------------------------------------------------------------------
def _header(memory: MemoryView, zone: ZoneInfo, *, wing: bool) -> Form:
    """`[TYPE|YYYY-MM-DD|WING]`, or without a wing `[TYPE|YYYY-MM-DD]`."""
    parts = (memory.memory_type.upper(), str(memory.said_at.astimezone(zone).date()), memory.wing)
    label = f"[{'|'.join(filter(None, parts))}]"
    attributes = {"id": short_ids.short(memory.id), "mode": str(Mode.HEADER)}
    if wing and memory.wing:
        attributes["wing"] = memory.wing
    return _form(Mode.HEADER, label, _closed(attributes, label), fidelity=HEADER_KEEPS)


def _fingerprint(memory: MemoryView, attributes: Mapping[str, str], *, below: int) -> Form | None:
    """The line of its facts; none where it costs `below` or more, or tells nothing beyond what the
    memory is about."""
    if not memory.fingerprint:
        return None
    parsed = fingerprints.parse(memory.fingerprint)
    if not fingerprints.is_worth_showing(parsed):
        return None
    line = fingerprints.line(parsed)
    text = _closed({"id": attributes["id"], "mode": Mode.FINGERPRINT, **attributes}, line)
    if line_tokens(text) >= below:
        return None
    share = fingerprints.share_of_facts(parsed, text=memory.text)
    return _form(Mode.FINGERPRINT, line, text, fidelity=share) if share > 0 else None


def _excerpt(memory: Recalled, attributes: Mapping[str, str], *, below: int) -> Form | None:
    """The passage of a long text that answers best; none where it costs `below` or more."""
    if not memory.excerpt:
        return None
    marked = {"id": attributes["id"], "mode": str(Mode.EXCERPT), **attributes}
    text = _closed(marked, memory.excerpt)
    form = _form(Mode.EXCERPT, memory.excerpt, text, fidelity=EXCERPT_KEEPS)
    return form if form.tokens < below else None


def _closed(attributes: Mapping[str, str], text: str) -> str:
    return f"<memory{_written(attributes)}>{quoted(text)}</memory>"


def element(memory: Recalled, *, zone: ZoneInfo, dated: bool = False) -> str:
    """The memory in full, with its notes and with one line for each that is linked to it."""
    return _full(memory, zone, _attributes(memory, zone, dated=dated, wing=False))


def _full(memory: Recalled, zone: ZoneInfo, attributes: Mapping[str, str]) -> str:
    told = dict(attributes)
    if memory.also:
        told["also"] = _ids(memory.also)
    relevance = memory.why.parts.relevance
    if relevance > RELEVANT:
        told["relevance"] = f"{relevance:.0%}"
    return _with(memory, told, [*_notes(memory, zone), *_linked(memory.linked, zone)])


def whole(memory: MemoryView, said: Sequence[tuple[datetime, str]], *, zone: ZoneInfo) -> str:
    """The memory with its notes and with what was said when it was: (when, the words)."""
    around = [
        f'<said on="{day(at, zone)}">{quoted(words)}</said>'
        for at, words in said
        if words.strip() and words != memory.text
    ]
    attributes = _attributes(memory, zone, dated=True, wing=True)
    return _with(memory, attributes, [*_notes(memory, zone), *around])


def _with(memory: MemoryView, attributes: Mapping[str, str], inside: Sequence[str]) -> str:
    opening = f"<memory{_written(attributes)}>{quoted(memory.text)}"
    return "\n".join([opening, *inside, "</memory>"]) if inside else f"{opening}</memory>"


def _notes(memory: MemoryView, zone: ZoneInfo) -> list[str]:
    return [
        f'<note added="{day(note.added_at, zone)}">{quoted(note.text)}</note>'
        for note in memory.notes
    ]


def _linked(linked: Sequence[LinkedMemory], zone: ZoneInfo) -> Iterator[str]:
    for memory in linked:
        attributes = {"how": memory.link_type, **_attributes(memory, zone, dated=True, wing=False)}
        if memory.bond:
            attributes["bond"] = memory.bond
        yield f"<linked{_written(attributes)}>{quoted(memory.text)}</linked>"


def _attributes(memory: MemoryView, zone: ZoneInfo, *, dated: bool, wing: bool) -> dict[str, str]:
    given = {
        "id": short_ids.short(memory.id),
        "said_on": day(memory.said_at, zone) if dated else "",
        "happens": _moment(memory.happens_at, zone),
        "holds_until": _moment(memory.expires_at, zone),
        "true": span(memory.valid_from, memory.valid_until, zone),
        "replaced_by": _ids(memory.replaced_by),
        "origin": memory.origin,
        "undecided_against": _ids(memory.disputed_by),
        "wing": memory.wing if wing else "",
        "reads_like": "an instruction" if _is_suspect(memory) else "",
    }
    return {name: value for name, value in given.items() if value}


def trust_of(memory: MemoryView) -> Trust:
    """Whose word it is."""
    return _TRUST_OF.get(memory.origin, Trust.SAID)


def _is_suspect(memory: MemoryView) -> bool:
    return instructions.reads_like_an_instruction((memory.text,), trust_of(memory))


def _ids(memory_ids: Sequence[UUID]) -> str:
    return ", ".join(short_ids.short(one) for one in memory_ids)


def _moment(moment: datetime | None, zone: ZoneInfo) -> str:
    return f"{day(moment, zone)}, {moment.astimezone(zone):%H:%M}" if moment else ""


def _written(attributes: Mapping[str, str]) -> str:
    return "".join([f' {name}="{_in_quotes(value)}"' for name, value in attributes.items()])


def _in_quotes(value: str) -> str:
    return quoted(value).replace('"', "&quot;")
