"""What a curator wants to change, gathered and checked, and done in one transaction or not at all.

Its tools only ever write on this desk. A call that does not fit is answered with what is wrong; the
database learns of anything only through `apply`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import structlog
from django.db import transaction
from django.utils import timezone
from pydantic import BaseModel, Field, ValidationError

from memory import (
    accesses,
    links,
    lookup,
    merging,
    scores,
    short_ids,
    storage,
    telling,
    tending,
    truth,
)
from memory.constants import CURATION_SEARCH
from memory.merging import StagedMerge
from memory.models import Memory, MemoryAccess, MemoryLink, MemoryRevision
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, RequestError, WorkLeftDue
from mira_site.llm.types import ToolCall, ToolResult, ToolSpec

log = structlog.get_logger(__name__)

ARCHIVED = "by the curator"
Mode = Literal["integration", "floor"]
Outcome = Literal["merge", "link", "supersede", "conflict", "alone", "archive", "annotate", "leave"]
OUTCOMES: Mapping[Mode, frozenset[Outcome]] = {
    "integration": frozenset(("merge", "link", "supersede", "conflict", "alone")),
    "floor": frozenset(("merge", "link", "archive", "annotate", "leave")),
}
QUIET: frozenset[Outcome] = frozenset(("alone", "leave"))
LinkType = Literal[
    "because",
    "triggered",
    "resolves",
    "corroborates",
    "refines",
    "exemplifies",
    "precedes",
    "contextualizes",
]
State = tuple[Any, ...]  # of a memory: all that a decision about it rests on
Reasoning = Field(min_length=5, max_length=500, description="Why, in a sentence.")


class Search(BaseModel):
    """Look for other memories, to confirm a suspicion."""

    query: str = Field(min_length=2, max_length=300, description="What to look for.")


class LinkMemories(BaseModel):
    """Say how one memory bears on another. One link for a pair, the best one."""

    source_memory_id: str = Field(description="The memory that bears on the other.")
    target_memory_id: str = Field(description="The memory it bears on.")
    link_type: LinkType = Field(description="Read from source to target.")
    reasoning: str = Reasoning
    bond: str = Field(default="", max_length=60, description="A word or two for the relation.")


class AnnotateMemory(BaseModel):
    """Put a note on a memory that makes it useful."""

    memory_id: str = Field(description="Which memory.")
    annotation: str = Field(min_length=3, max_length=1000, description="The note.")


class Touch(BaseModel):
    """Say that a memory was confirmed by what was said."""

    memory_ids: list[str] = Field(min_length=1, max_length=20, description="Which memories.")


class Archive(BaseModel):
    """Put a memory away that is redundant, stale, trivial or wrong; search first."""

    memory_id: str = Field(description="Which of the memories handed to you.")
    reasoning: str = Reasoning


class MergeMemories(BaseModel):
    """Make several memories that state the same fact one."""

    memory_ids: list[str] = Field(min_length=2, max_length=20, description="All that become one.")
    consolidated_text: str = Field(
        min_length=10, description="One text with every name, number, date and nuance of all."
    )
    merge_note: str = Field(default="", max_length=500, description="Why they are one fact.")


class Supersede(BaseModel):
    """The newer memory replaces the older, which was true before and no longer is."""

    newer_memory_id: str = Field(description="What is true now.")
    older_memory_id: str = Field(description="What was true before.")
    reasoning: str = Reasoning


class MarkConflict(BaseModel):
    """Two memories cannot both be true and nothing tells which is; the person will be asked."""

    first_memory_id: str = Field(description="One of them.")
    second_memory_id: str = Field(description="The other.")
    reasoning: str = Reasoning


class Verdict(BaseModel):
    memory_id: str = Field(description="One of the memories handed to you.")
    outcome: Outcome = Field(description="What became of it.")
    reason: str = Field(default="", max_length=300, description="Why, in a few words.")


class Finish(BaseModel):
    """End your work, with one verdict for every memory handed to you; else nothing is done."""

    summary: list[Verdict] = Field(min_length=1, description="One verdict for each memory.")


TOOLS: Mapping[str, type[BaseModel]] = {
    "search": Search,
    "link_memories": LinkMemories,
    "annotate_memory": AnnotateMemory,
    "touch": Touch,
    "archive": Archive,
    "merge_memories": MergeMemories,
    "supersede": Supersede,
    "mark_conflict": MarkConflict,
    "finish": Finish,
}
_ONLY: Mapping[str, Mode] = {
    "touch": "integration",
    "supersede": "integration",
    "mark_conflict": "integration",
    "archive": "floor",
}


@dataclass(slots=True)
class Desk:
    """The memories handed to a curator, and all that is to become of them.

    Make it before the memories, and those `shown` beside them, are rendered: what changes after
    that was not what the curator read.
    """

    user: User
    mode: Mode
    handed: tuple[UUID, ...]
    shown: tuple[UUID, ...] = ()
    segment_id: UUID | None = None
    is_finished: bool = False
    linked: list[tuple[UUID, UUID, LinkMemories]] = field(default_factory=list)
    notes: list[tuple[UUID, str]] = field(default_factory=list)
    touched: list[UUID] = field(default_factory=list)
    archived: list[UUID] = field(default_factory=list)
    merges: list[StagedMerge] = field(default_factory=list)
    replaced: list[tuple[UUID, UUID, str]] = field(default_factory=list)
    disputed: list[tuple[UUID, UUID, str]] = field(default_factory=list)
    _done: dict[UUID, set[Outcome]] = field(default_factory=dict)
    _pairs: set[frozenset[UUID]] = field(default_factory=set)
    _known: dict[UUID, State] = field(init=False)
    _seen: dict[UUID, State] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._known = _states(self.user, (*self.handed, *self.shown))

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools of this mode. None of them creates a memory or edits a text in place."""
        return tuple(
            ToolSpec(name=name, description=model.__doc__ or "", input_schema=_schema(model))
            for name, model in TOOLS.items()
            if _ONLY.get(name, self.mode) == self.mode
        )

    def do(self, call: ToolCall) -> ToolResult:
        """Take one call. What does not fit is an error result and changes nothing on the desk."""
        model = TOOLS.get(call.name)
        if model is None or _ONLY.get(call.name, self.mode) != self.mode:
            return self._refused(call, "There is no such tool here.")
        if call.malformed:
            return self._refused(call, "The arguments were no complete JSON object.")
        try:
            given = model.model_validate(dict(call.input))
            text = self._act[call.name](given)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False, include_context=False)
            lines = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in found[:10]]
            return self._refused(call, "\n".join(["The arguments do not fit.", *lines]))
        except RequestError as error:
            return self._refused(call, "\n".join([str(error), *error.fields.values()]))
        return ToolResult(call_id=call.id, text=text)

    @property
    def _act(self) -> Mapping[str, Callable[[Any], str]]:
        return {
            "search": self._search,
            "link_memories": self._link,
            "annotate_memory": self._annotate,
            "touch": self._touch,
            "archive": self._archive,
            "merge_memories": self._merge,
            "supersede": self._supersede,
            "mark_conflict": self._dispute,
            "finish": self._finish,
        }

    @staticmethod
    def _refused(call: ToolCall, text: str) -> ToolResult:
        return ToolResult(call_id=call.id, text=text, is_error=True)

    # --- One method a tool -----------------------------------------------------------------------

    def _search(self, given: Search) -> str:
        now = timezone.now()
        found = lookup.look_up(self.user, given.query, limit=CURATION_SEARCH, now=now)
        return f"<results>\n{found.text}\n</results>" if found.count else "Nothing is found."

    def _link(self, given: LinkMemories) -> str:
        source, target = self._two(given.source_memory_id, given.target_memory_id)
        self._take([source, target], "link")
        self._pairs.add(frozenset((source, target)))
        self.linked.append((source, target, given))
        return "Noted."

    def _annotate(self, given: AnnotateMemory) -> str:
        memory_id = self._one(given.memory_id)
        text = tending.checked_note(given.annotation)
        self._take([memory_id], "annotate")
        self.notes.append((memory_id, text))
        return "Noted."

    def _touch(self, given: Touch) -> str:
        ids = short_ids.resolve_all(self.user, given.memory_ids)
        for memory_id in ids:
            self._look(memory_id)
        self.touched.extend(ids)
        return "Noted."

    def _archive(self, given: Archive) -> str:
        memory_id = self._one(given.memory_id)
        self._take([memory_id], "archive")
        self.archived.append(memory_id)
        return "Noted."

    def _merge(self, given: MergeMemories) -> str:
        ids = short_ids.resolve_all(self.user, given.memory_ids)
        self._must_be_handed(ids)
        staged = merging.stage(self.user, ids, given.consolidated_text, given.merge_note)
        self._take(ids, "merge")
        self.merges.append(staged)
        return "Noted."

    def _supersede(self, given: Supersede) -> str:
        newer, older = self._two(given.newer_memory_id, given.older_memory_id)
        if self._trust(newer) < self._trust(older):
            raise BadRequest("The older one has the better source. Mark a conflict instead.")
        self._take([newer, older], "supersede")
        self._pairs.add(frozenset((newer, older)))
        self.replaced.append((newer, older, given.reasoning))
        return "Noted."

    def _dispute(self, given: MarkConflict) -> str:
        first, second = self._two(given.first_memory_id, given.second_memory_id)
        self._take([first, second], "conflict")
        self._pairs.add(frozenset((first, second)))
        self.disputed.append((first, second, given.reasoning))
        return "Noted."

    def _finish(self, given: Finish) -> str:
        """Raises BadRequest unless each memory has exactly the verdict that the calls bear out."""
        verdicts: dict[UUID, Outcome] = {}
        for verdict in given.summary:
            memory_id = self._one(verdict.memory_id)
            if memory_id in verdicts:
                raise BadRequest(f"{short_ids.short(memory_id)} has two verdicts. Give one.")
            verdicts[memory_id] = verdict.outcome
        wrong = [
            problem
            for memory_id in self.handed
            if (problem := self._problem(memory_id, verdicts.get(memory_id)))
        ]
        if wrong:
            raise BadRequest("\n".join(wrong))
        self.is_finished = True
        return "Done."

    def _problem(self, memory_id: UUID, verdict: Outcome | None) -> str:
        name = short_ids.short(memory_id)
        if verdict is None:
            return f"{name} has no verdict."
        if verdict not in OUTCOMES[self.mode]:
            return f"{name}: {verdict} is not for this task."
        done = self._done.get(memory_id, set())
        if verdict in QUIET:
            loud = done - {"annotate"}
            return f"{name} is to be {verdict}, but was also: {', '.join(loud)}." if loud else ""
        return "" if verdict in done else f"{name}: no {verdict} was noted for it."

    # --- What may be named, and with what --------------------------------------------------------

    def _one(self, given: str) -> UUID:
        memory_id = short_ids.resolve(self.user, given)
        self._must_be_handed([memory_id])
        return memory_id

    def _two(self, one: str, other: str) -> tuple[UUID, UUID]:
        ids = short_ids.resolve(self.user, one), short_ids.resolve(self.user, other)
        if ids[0] == ids[1]:
            raise BadRequest("Name two different memories.")
        self._must_be_handed(ids)
        if frozenset(ids) in self._pairs:
            raise BadRequest("Something was noted for these two already. One pair, one call.")
        return ids

    def _must_be_handed(self, ids: Collection[UUID]) -> None:
        if not set(ids) & set(self.handed):
            raise BadRequest("At least one of them must be a memory that was handed to you.")

    def _trust(self, memory_id: UUID) -> int:
        return int(
            Memory.objects.for_user(self.user).values_list("trust", flat=True).get(id=memory_id)
        )

    def _take(self, ids: Sequence[UUID], outcome: Outcome) -> None:
        """Note what becomes of the memories. Raises BadRequest where that contradicts itself."""
        for memory_id in ids:
            before = self._done.get(memory_id, set())
            clash = before & {"merge", "archive"} or (
                before - {"annotate"} if outcome in ("merge", "archive") else set()
            )
            if clash:
                raise BadRequest(
                    f"{short_ids.short(memory_id)} has been noted already: {', '.join(clash)}. "
                    "One memory has one outcome."
                )
        for memory_id in ids:
            self._look(memory_id)
            self._done.setdefault(memory_id, set()).add(outcome)

    def _look(self, memory_id: UUID) -> None:
        """Remember how the memory was when it was decided on."""
        known = self._known.get(memory_id) or _states(self.user, [memory_id]).get(memory_id, ())
        self._seen.setdefault(memory_id, known)

    # --- The swap --------------------------------------------------------------------------------

    @transaction.atomic
    def apply(self, *, at: datetime) -> None:
        """Do all of it, and note that the handed memories were looked after.

        Raises WorkLeftDue if a memory has changed since it was decided on, or what the single
        writes raise; then nothing is changed.
        """
        storage.lock(self.user)
        if _states(self.user, list(self._seen)) != self._seen:
            raise WorkLeftDue("A memory was changed meanwhile. It is looked at anew, later.")
        author = MemoryLink.Author.MODEL
        for source, target, given in self.linked:
            links.connect(
                self.user,
                source,
                target,
                link_type=given.link_type,
                reasoning=given.reasoning,
                bond=given.bond,
                author=author,
                at=at,
            )
        for memory_id, text in self.notes:
            tending.annotate(
                user=self.user,
                memory_id=memory_id,
                text=text,
                author=MemoryRevision.Author.CURATOR,
                at=at,
            )
        for newer, older, why in self.replaced:
            truth.supersede(self.user, newer, older, at=at, reasoning=why, author=author)
        for one, other, why in self.disputed:
            older, newer = self._by_age(one, other)
            truth.conflict(self.user, older, newer, reasoning=why, at=at, author=author)
        for staged in self.merges:
            merging.swap(self.user, staged, author=MemoryRevision.Author.CURATOR, at=at)
        self._end(at)

    def _by_age(self, one: UUID, other: UUID) -> tuple[UUID, UUID]:
        rows = Memory.objects.for_user(self.user).filter(id__in=(one, other))
        older, newer = rows.order_by("created_at", "id").values_list("id", flat=True)
        return older, newer

    def _end(self, at: datetime) -> None:
        mine = Memory.objects.for_user(self.user)
        rows = mine.live().filter(id__in=self.archived)
        if rows.update(archived_at=at, archive_reason=ARCHIVED, updated_at=at):
            gone = mine.filter(archived_at=at, archive_reason=ARCHIVED).defer("embedding")
            telling.archived(self.user, gone, reason=ARCHIVED)
        mine.filter(id__in=self.handed).update(tended_at=at)
        accesses.record(
            self.user,
            self.touched,
            segment_id=self.segment_id,
            kind=MemoryAccess.Kind.USED,
            at=at,
        )
        scores.rescore(self.user, now=at, memory_ids=list(self._seen))


def _states(user: User, ids: Sequence[UUID]) -> dict[UUID, State]:
    rows = Memory.objects.for_user(user).filter(id__in=ids)
    names = ("text", "happens_at", "expires_at", "valid_until", "archived_at", "quarantined_at",
             "muted_at", "trust")  # fmt: skip
    return {row[0]: row[1:] for row in rows.values_list("id", *names)}


def _schema(model: type[BaseModel]) -> Mapping[str, object]:
    schema: dict[str, object] = json.loads(json.dumps(model.model_json_schema()))
    schema.pop("title", None)
    schema.pop("description", None)
    return schema
