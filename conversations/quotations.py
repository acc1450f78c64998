"""What stands around turns quotes the talk: what is forgotten or changed goes from there too.

Contexts, subcortical records, observations and briefs are written after an answer is out. Whoever
writes one holds `lock` and looks whether what it quotes was forgotten meanwhile; whoever forgets
holds it too, so that nothing is written behind their back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import connection
from django.db.models import Exists, F, Q

from conversations.constants import CONTEXT_KEPT_DAYS
from conversations.models import (
    CompactionBrief,
    ComposedContext,
    ContextSection,
    Message,
    Observation,
    Segment,
    SubcorticalRecord,
    ToolCall,
    Turn,
)
from memory.types import ForgetReceipt, Forgotten, Imprint
from mira_site.accounts.models import User
from mira_site.owned import OwnedQuerySet
from mira_site.prompts import quoted

log = structlog.get_logger(__name__)

SILENT_SECTIONS = ("persona", "clock")  # nothing that a person said is in them
TELLING_SECTIONS = ("brief", "guidance", "cut_answer")  # of messages of their own segment
EMPTIED: Mapping[str, object] = {
    "input": {},
    "result": "What this returned was forgotten since, because the person wished so.",
    "compact_result": "",
    "summary": "Something forgotten since",
}  # a tool call of which something was forgotten
FORGETTING_S = 5  # forgetting shows at its end; a turn that began until then may have read it
BEGINNING_CHARS = 60  # by which the last words of a segment are found in the prompts of the next


def lock(user_id: UUID) -> None:
    """One at a time writes or cleans a person's records, until the transaction ends.

    Taken after the thread and after the memories, never before either.
    """
    with connection.cursor() as cursor:
        name = f"records {user_id}"
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])


def forgot_since(turn: Turn) -> bool:
    """Whether anything was forgotten since the turn was begun, so that its answer may hold it.

    The caller stores the answer, and holds `lock` from here on.
    """
    lock(turn.user_id)
    return bool(_forgotten_since(turn).exists())


def empty(calls: Iterable[ToolCall]) -> None:
    """Take out what was asked and answered, before it is stored."""
    for call in calls:
        for name, value in EMPTIED.items():
            setattr(call, name, value)


def _forgotten_since(turn: Turn) -> OwnedQuerySet:
    since = turn.started_at or turn.queued_at
    rows: OwnedQuerySet = ForgetReceipt.objects.for_user(turn.user_id)
    return rows.filter(requested_at__gte=since - timedelta(seconds=FORGETTING_S))


def may_be_kept(turn: Turn, window: Sequence[Message]) -> bool | None:
    """Whether the turn's prompt may still be kept; None if the turn itself is gone.

    Not if anything was forgotten, edited or deleted since it was begun. The caller holds `lock`;
    the turn's row stays until the transaction ends.
    """
    since, user_id = turn.started_at or turn.queued_at, turn.user_id
    signs = {
        "forgot": _forgotten_since(turn),
        "edited": Message.objects.for_user(user_id).filter(edited_at__gte=since),
        "is_stale": Segment.objects.for_user(user_id).filter(summary_stale_at__gte=since),
    }
    row = (
        Turn.objects.for_user(user_id)
        .select_for_update(no_key=True, of=("self",))
        .filter(pk=turn.pk)
        .annotate(**{name: Exists(rows) for name, rows in signs.items()})
        .values_list(*signs)
        .first()
    )
    if row is None:
        return None
    ids = [message.pk for message in window if message.pk]
    there = Message.objects.for_user(user_id).filter(pk__in=ids).count()
    return not any(row) and there == len(ids)


def forget(user: User, forgotten: Forgotten, touched: Collection[UUID]) -> Mapping[str, int]:
    """Delete what quotes a forgotten memory; `touched` are segments whose summaries tell it.

    Runs inside the transaction that forgets.
    """
    lock(user.pk)
    imprint = forgotten.imprint
    named = [f"mem_{memory_id.hex[:8]}" for memory_id in forgotten.memory_ids]
    named += [f"seg_{segment_id.hex[:8]}" for segment_id in touched]
    return {
        "contexts": _delete(ContextSection, user, _quoting_sections(user, imprint, named))
        + _sections(user, touched).filter(name__in=TELLING_SECTIONS).delete()[0],
        "subcortical": _forget_subcortical(user, forgotten, touched),
        "observations": _delete(Observation, user, _quoting_observations(user, imprint, touched)),
        "briefs": _delete(CompactionBrief, user, _quoting_briefs(user, imprint, touched)),
    }


def message_changed(user: User, message: Message, said: str) -> None:
    """The message that `said` this is being deleted or edited: what was made of it goes.

    Runs inside the transaction that changes it, before rows of the thread are deleted.
    """
    lock(user.pk)
    segment_id = message.segment_id
    later = Turn.objects.for_user(user).filter(
        segment=segment_id, messages__position__gte=message.position
    )
    SubcorticalRecord.objects.for_user(user).filter(turn__in=later).delete()
    Observation.objects.for_user(user).filter(segment=segment_id, turn__in=later).delete()
    CompactionBrief.objects.for_user(user).filter(
        segment=segment_id, covered_to_position__gte=message.position
    ).delete()
    _sections(user, [segment_id]).filter(name__in=TELLING_SECTIONS).delete()
    rows = ContextSection.objects.for_user(user).exclude(name__in=SILENT_SECTIONS)
    rows.filter(
        Q(text__contains=f"seg_{segment_id.hex[:8]}") | Q(text__contains=_as_last_words(said))
    ).delete()


def _as_last_words(said: str) -> str:
    """How a message begins where a prompt quotes it; a short one is quoted up to its end."""
    flat = " ".join(said.split())
    end = "" if len(flat) > BEGINNING_CHARS else "</said>"
    return f'">{quoted(flat[:BEGINNING_CHARS])}{end}'


def delete_old(*, at: datetime) -> int:
    """Records of segments that came to rest long ago. Runs inside `all_users`."""
    until = at - timedelta(days=CONTEXT_KEPT_DAYS)
    old = Segment.objects.filter(collapsed_at__lt=until).exclude(status=Segment.Status.ACTIVE)
    gone = (
        ComposedContext.objects.filter(turn__segment__in=old).delete()[0]
        + ContextSection.objects.filter(segment__in=old).delete()[0]
        + SubcorticalRecord.objects.filter(turn__segment__in=old).delete()[0]
        + Observation.objects.filter(segment__in=old).delete()[0]
    )
    if gone:
        log.info("records.deleted", rows=gone)
    return gone


def _sections(user: User, segment_ids: Collection[UUID]) -> OwnedQuerySet:
    return ContextSection.objects.for_user(user).filter(segment__in=segment_ids)


def _quoting_sections(user: User, imprint: Imprint, named: Sequence[str]) -> Iterable[UUID]:
    """By its words, or because the memory or the summary itself stands in it, whatever its form."""
    rows = ContextSection.objects.for_user(user).exclude(name__in=SILENT_SECTIONS)
    for row_id, text in rows.values_list("id", "text").iterator():
        if any(name in text for name in named) or imprint.is_in(text):
            yield row_id


def _quoting_observations(
    user: User, imprint: Imprint, touched: Collection[UUID]
) -> Iterable[UUID]:
    """Those of segments where it was said go too: they tell it in words of their own."""
    rows = Observation.objects.for_user(user).exclude(guidance="", failure="")
    columns = rows.values_list("id", "segment_id", "failure", "guidance")
    for row_id, segment_id, failure, guidance in columns.iterator():
        if segment_id in touched or imprint.is_in(f"{failure}\n{guidance}"):
            yield row_id


def _quoting_briefs(user: User, imprint: Imprint, touched: Collection[UUID]) -> Iterable[UUID]:
    """Those of segments where it was said go too: they tell it in words of their own."""
    rows = CompactionBrief.objects.for_user(user).values_list("id", "segment_id", "text")
    for row_id, segment_id, text in rows.iterator():
        if segment_id in touched or imprint.is_in(text):
            yield row_id


def _forget_subcortical(user: User, forgotten: Forgotten, touched: Collection[UUID]) -> int:
    """Records go whose phrases or names say it, or may in words of their own, being of segments
    where it was said; others only lose the memory's id.
    """
    doomed = {str(memory_id) for memory_id in forgotten.memory_ids}
    rows = SubcorticalRecord.objects.for_user(user).annotate(segment_id=F("turn__segment_id"))
    columns = ("phrases", "entities", "offered_ids", "kept_ids")
    quoting, naming = [], []
    for row in rows.only(*columns).iterator():
        is_told = row.segment_id in touched
        if is_told or forgotten.imprint.is_in("\n".join([*row.phrases, *row.entities])):
            quoting.append(row.pk)
        elif doomed & {*row.offered_ids, *row.kept_ids}:
            row.offered_ids = [one for one in row.offered_ids if one not in doomed]
            row.kept_ids = [one for one in row.kept_ids if one not in doomed]
            naming.append(row)
    SubcorticalRecord.objects.bulk_update(naming, ["offered_ids", "kept_ids"], batch_size=500)
    return _delete(SubcorticalRecord, user, quoting)


def _delete(
    model: type[ContextSection | Observation | CompactionBrief | SubcorticalRecord],
    user: User,
    ids: Iterable[UUID],
) -> int:
    return int(model.objects.for_user(user).filter(pk__in=list(ids)).delete()[0])
