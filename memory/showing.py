"""Memories as values to be shown, with sources, notes and what disputes them, in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from memory import visibility
from memory.models import Trust
from memory.types import MemoryView, Note, SourceRef
from mira_site.accounts.models import User

# IS NOT DISTINCT FROM: by `=` PostgreSQL would walk through all rows of the person; see index.py.
_SHOWN = f"""
SELECT shown.id, shown.text, shown.created_at, shown.happens_at, shown.expires_at,
       shown.valid_from, shown.valid_until, shown.trust,
       (SELECT json_agg(json_build_array(s.message_id, s.segment_id, s.sentence, s.said_at)
                        ORDER BY s.said_at, s.message_id)
        FROM memory_sources AS s WHERE s.user_id = %(user)s AND s.memory_id = shown.id),
       (SELECT json_agg(json_build_array(a.text, a.created_at) ORDER BY a.created_at, a.id)
        FROM memory_annotations AS a WHERE a.user_id = %(user)s AND a.memory_id = shown.id),
       ARRAY(SELECT m.id
             FROM memory_conflicts AS c
             JOIN memory_memories AS m ON m.user_id = %(user)s
              AND m.id IN (c.older_id, c.newer_id) AND m.id <> shown.id
             WHERE c.user_id = %(user)s AND c.status = 'open'
               AND shown.id IN (c.older_id, c.newer_id) AND {visibility.SQL}
             ORDER BY m.id),
       ARRAY(SELECT m.id
             FROM memory_links AS l JOIN memory_memories AS m ON m.id = l.source_id
             WHERE l.user_id = %(user)s AND l.target_id = shown.id
               AND l.link_type = 'supersedes' AND m.user_id = %(user)s AND {visibility.SQL}
             ORDER BY m.id),
       shown.said_at, shown.memory_type, shown.wing, shown.room, shown.source_segment_id,
       (SELECT f.canonical FROM memory_fingerprints AS f
        WHERE f.user_id = %(user)s AND f.memory_id = shown.id)
FROM (
    SELECT m.* FROM memory_memories AS m
    WHERE m.user_id IS NOT DISTINCT FROM %(user)s AND m.id = ANY(%(ids)s) AND {visibility.SQL}
) AS shown
"""  # noqa: S608


def shown(
    user: User, memory_ids: Sequence[UUID], *, now: datetime, past: bool = False
) -> dict[UUID, MemoryView]:
    """Those of the memories that may come up at `now`, by id."""
    if not memory_ids:
        return {}
    values: dict[str, Any] = {"user": user.pk, "ids": list(memory_ids), "now": now, "past": past}
    with connection.bound_cursor(binary=True, prepared=True) as cursor:  # type: ignore[attr-defined]
        cursor.execute(_SHOWN, values)
        return {row[0]: _view(row) for row in cursor.fetchall()}


def _view(row: tuple[Any, ...]) -> MemoryView:
    memory_id, text, created_at, happens_at, expires_at, valid_from, valid_until, trust = row[:8]
    sources, notes, disputed_by, replaced_by = row[8:12]
    said_at, memory_type, wing, room, segment_id, fingerprint = row[12:]
    return MemoryView(
        id=memory_id,
        short_id=memory_id.hex[:8],
        text=text,
        created_at=created_at,
        said_at=said_at,
        memory_type=memory_type,
        wing=wing,
        room=room,
        segment_id=segment_id,
        fingerprint=fingerprint or "",
        happens_at=happens_at,
        expires_at=expires_at,
        valid_from=valid_from,
        valid_until=valid_until,
        origin="" if trust == Trust.SAID else Trust(trust).label,
        sources=tuple(
            SourceRef(
                message_id=UUID(message_id),
                segment_id=UUID(segment_id) if segment_id else None,
                sentence=sentence,
                said_at=datetime.fromisoformat(said_at),
            )
            for message_id, segment_id, sentence, said_at in sources or ()
        ),
        notes=tuple(
            Note(text=note, added_at=datetime.fromisoformat(added_at))
            for note, added_at in notes or ()
        ),
        disputed_by=tuple(disputed_by),
        replaced_by=tuple(replaced_by),
    )
