"""Importance of a person's memories in one statement: `scoring.importance` written in SQL.

Both forms take their constants from scoring.py; tests/memory/test_scores.py holds them equal.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from memory import scoring, storage, telling
from memory.dates import start_of
from memory.models import Memory, MemoryAccess, MemoryLink
from mira_site.accounts import selectors as accounts
from mira_site.accounts.models import User

FADED = "faded"
EXPIRED = "expired"
# These links say that their target is no longer true, or may not be: nothing that raises it.
AGAINST = (MemoryLink.Type.SUPERSEDES.value, MemoryLink.Type.CONFLICTS.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """How many memories were archived, and why."""

    faded: int
    expired: int


_CONSTANTS: Final[dict[str, Any]] = {
    "used": MemoryAccess.Kind.USED.value,
    "used_weight": scoring.USED_WEIGHT,
    "surfaced_weight": scoring.SURFACED_WEIGHT,
    "against": list(AGAINST),
    "type_weights": json.dumps(scoring.ENTITY_TYPE_WEIGHTS),
    "neglect_rates": [scoring.NEGLECT_PER_USE_DAY[stakes] for stakes in sorted(scoring.Stakes)],
    "value_weight": scoring.VALUE_WEIGHT,
    "momentum": scoring.MOMENTUM,
    "rate_min_age": scoring.RATE_MIN_AGE,
    "rate_baseline": scoring.RATE_BASELINE,
    "link_step": scoring.LINK_STEP,
    "link_knee": scoring.LINK_KNEE,
    "link_tail": scoring.LINK_TAIL,
    "link_damping": scoring.LINK_DAMPING,
    "mention_step": scoring.MENTION_STEP,
    "mention_knee": scoring.MENTION_KNEE,
    "mention_tail": scoring.MENTION_TAIL,
    "entity_step": scoring.ENTITY_STEP,
    "entity_knee": scoring.ENTITY_KNEE,
    "entity_tail": scoring.ENTITY_TAIL,
    "newness": scoring.NEWNESS,
    "newness_decay": scoring.NEWNESS_DECAY,
    "recency": scoring.RECENCY,
    "past_event_days": scoring.PAST_EVENT_DAYS,
    "past_event_floor": scoring.PAST_EVENT_FLOOR,
    "past_event_span": scoring.PAST_EVENT_SPAN,
    "expiry_grace_days": scoring.EXPIRY_GRACE_DAYS,
    "centre": scoring.CENTRE,
    "neglect_grace": scoring.NEGLECT_GRACE,
    "neglect_forgiven": scoring.NEGLECT_FORGIVEN,
    "argument_min": scoring.ARGUMENT_MIN,
}


def _steps(steps: Sequence[tuple[float, float]], *, beyond: float) -> str:
    """A CASE over (within days, value), nearest first; `beyond` without a date or outside all."""
    whens = " ".join(f"WHEN happens_in_days <= {within} THEN {value}" for within, value in steps)
    return f"CASE WHEN happens_in_days < 0 THEN {beyond} {whens} ELSE {beyond} END"


# What scoring.Signals holds, one row a memory. A name counts for its canonical entity, and two
# names of one entity in one memory count once. Rows are locked in the order of their ids, as
# everybody does who locks several, or two writers could wait for each other.
_SIGNALS: Final = """
WITH chosen AS MATERIALIZED (
    SELECT id, created_use_day, stakes, happens_at, expires_at, importance_by_person
    FROM memory_memories
    WHERE user_id = %(user)s AND archived_at IS NULL
      AND (%(everything)s OR id = ANY(%(memories)s))
    ORDER BY id
    FOR NO KEY UPDATE
),
accessed AS (
    SELECT memory_id,
           sum(CASE kind WHEN %(used)s THEN %(used_weight)s ELSE %(surfaced_weight)s END)::float8
               AS accesses,
           count(*) FILTER (WHERE kind = %(used)s) AS mentions,
           max(use_day) AS latest
    FROM memory_accesses
    WHERE user_id = %(user)s AND memory_id IN (SELECT id FROM chosen)
    GROUP BY memory_id
),
linked AS (
    SELECT link.target_id AS memory_id, count(*) AS links
    FROM memory_links AS link
    JOIN memory_memories AS source ON source.id = link.source_id
    WHERE link.user_id = %(user)s AND link.target_id IN (SELECT id FROM chosen)
      AND NOT link.link_type = ANY(%(against)s)
      AND source.archived_at IS NULL AND source.quarantined_at IS NULL
    GROUP BY link.target_id
),
named AS MATERIALIZED (
    SELECT DISTINCT mention.memory_id, coalesce(entity.canonical_id, entity.id) AS root
    FROM memory_entity_links AS mention
    JOIN memory_entities AS entity ON entity.id = mention.entity_id
    WHERE mention.user_id = %(user)s AND mention.memory_id IN (SELECT id FROM chosen)
),
famed AS (
    SELECT root.id,
           count(DISTINCT memory.id)
               * coalesce((%(type_weights)s::jsonb ->> root.entity_type)::float8, 0) AS strength
    FROM memory_entities AS root
    JOIN memory_entities AS entity ON coalesce(entity.canonical_id, entity.id) = root.id
    JOIN memory_entity_links AS mention ON mention.entity_id = entity.id
    JOIN memory_memories AS memory ON memory.id = mention.memory_id AND memory.archived_at IS NULL
    WHERE root.user_id = %(user)s AND entity.user_id = %(user)s
      AND root.archived_at IS NULL AND root.id IN (SELECT root FROM named)
    GROUP BY root.id, root.entity_type
),
mentioned AS (
    SELECT named.memory_id, sum(famed.strength) AS entity_links
    FROM named JOIN famed ON famed.id = named.root
    GROUP BY named.memory_id
),
signals AS (
    SELECT chosen.id, chosen.importance_by_person,
           greatest(0, %(use_days)s - chosen.created_use_day)::float8 AS age,
           greatest(0, %(use_days)s - coalesce(accessed.latest, chosen.created_use_day))::float8
               AS idle,
           coalesce(accessed.accesses, 0)::float8 AS accesses,
           coalesce(linked.links, 0)::float8 AS links,
           coalesce(mentioned.entity_links, 0)::float8 AS entity_links,
           coalesce(accessed.mentions, 0)::float8 AS mentions,
           CASE WHEN (chosen.happens_at AT TIME ZONE %(zone)s)::date
                     = (%(now)s AT TIME ZONE %(zone)s)::date THEN 0
                ELSE extract(epoch FROM chosen.happens_at - %(now)s)::float8 / 86400
           END AS happens_in_days,
           extract(epoch FROM chosen.expires_at - %(now)s)::float8 / 86400 AS expires_in_days,
           (%(neglect_rates)s::float8[])[chosen.stakes + 1] AS neglect_rate
    FROM chosen
    LEFT JOIN accessed ON accessed.memory_id = chosen.id
    LEFT JOIN linked ON linked.memory_id = chosen.id
    LEFT JOIN mentioned ON mentioned.memory_id = chosen.id
),
"""
# The steps of scoring.py, in its order. power() raises an error where it underflows, hence the
# bound: 0.95 to the 2000th is nothing either way.
_FORMULA: Final = """
earned AS (
    SELECT signals.*,
           %(value_weight)s * ln(
               1 + accesses * power(%(momentum)s::float8, least(idle, 2000))
                   / greatest(%(rate_min_age)s, age) / %(rate_baseline)s)
           + CASE WHEN links <= %(link_knee)s THEN %(link_step)s * links
                  ELSE %(link_step)s * %(link_knee)s + %(link_tail)s * (links - %(link_knee)s)
                       / (1 + %(link_damping)s * (links - %(link_knee)s)) END
           + CASE WHEN mentions <= %(mention_knee)s THEN %(mention_step)s * mentions
                  ELSE %(mention_step)s * %(mention_knee)s
                       + %(mention_tail)s * ln(1 + mentions - %(mention_knee)s) END
           AS own_worth,
           CASE WHEN entity_links <= %(entity_knee)s THEN %(entity_step)s * entity_links
                ELSE %(entity_step)s * %(entity_knee)s
                     + %(entity_tail)s * ln(entity_links / %(entity_knee)s) END
           AS entity_worth
    FROM signals
),
weighed AS (
    SELECT earned.*,
           (own_worth + entity_worth + greatest(0, %(newness)s - %(newness_decay)s * age))
               / (1 + %(recency)s * idle) AS steady,
           CASE WHEN happens_in_days IS NULL THEN 1
                ELSE least(1, greatest(0, -happens_in_days / %(past_event_days)s)) END AS past,
           UPCOMING_STEPS AS upcoming,
           LIFT_STEPS AS lift,
           CASE WHEN expires_in_days < 0 THEN 1 + expires_in_days / %(expiry_grace_days)s
                ELSE 1 END AS expiry
    FROM earned
),
argued AS (
    SELECT weighed.*,
           greatest(
               steady * CASE
                   WHEN happens_in_days < 0
                       THEN %(past_event_floor)s + %(past_event_span)s * (1 - past)
                   ELSE upcoming END,
               steady + lift
           ) * greatest(0, expiry) - %(centre)s
           - neglect_rate * greatest(0, least(age, idle) - %(neglect_grace)s)
               * greatest(0, 1 - own_worth / %(neglect_forgiven)s) * past
           AS argument
    FROM weighed
),
scored AS (
    SELECT id,
           CASE WHEN expiry < 0 THEN 0
                WHEN importance_by_person IS NOT NULL THEN importance_by_person
                ELSE round(
                    (1 / (1 + exp(-greatest(%(argument_min)s, argument))))::numeric, 3)::float8
           END AS importance
    FROM argued
)
""".replace("UPCOMING_STEPS", _steps(scoring.UPCOMING, beyond=1.0)).replace(
    "LIFT_STEPS", _steps(scoring.LIFT, beyond=0.0)
)
# A row that keeps its score is not written: most of the old ones do, and each write of a row with a
# vector costs as much as scoring a hundred.
_UPDATE: Final = """
UPDATE memory_memories AS m
SET importance = scored.importance, scored_at = %(now)s
FROM scored
WHERE m.id = scored.id
  AND (m.importance IS DISTINCT FROM scored.importance OR m.scored_at IS NULL)
"""
_RESCORE: Final = _SIGNALS + _FORMULA + _UPDATE


@transaction.atomic
def rescore(user: User, *, now: datetime, memory_ids: Sequence[UUID] | None = None) -> int:
    """Bring the scores of the person's live memories up to date; returns how many changed.

    All of them, or those named. What the person said of one's importance stands until it expires.
    """
    storage.lock(user)
    values = {
        **_CONSTANTS,
        "user": user.pk,
        "everything": memory_ids is None,
        "memories": list(memory_ids or ()),
        "use_days": accounts.use_days(user),
        "zone": accounts.zone(user).key,
        "now": now,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RESCORE, values)
        return int(cursor.rowcount)


@transaction.atomic
def archive_faded(user: User, *, now: datetime) -> Archived:
    """Archive, restorably, what has sunk below ARCHIVE_BELOW and what expired before the grace.

    Never by fading: what the person weighed themselves, what waits for a look, what is kept as
    past because something newer replaced it, what has its day today or still to come, and what was
    never scored.
    """
    storage.lock(user)
    live = Memory.objects.for_user(user).live()
    grace = timedelta(days=scoring.EXPIRY_GRACE_DAYS)
    expired = live.filter(expires_at__lt=now - grace).update(
        archived_at=now, archive_reason=EXPIRED, updated_at=now
    )
    zone = accounts.zone(user)
    today = start_of(now.astimezone(zone).date(), zone)
    faded = (
        live.filter(
            importance__lt=scoring.ARCHIVE_BELOW,
            importance_by_person__isnull=True,
            quarantined_at__isnull=True,
            valid_until__isnull=True,
            scored_at__isnull=False,
        )
        .exclude(happens_at__gte=today)
        .update(archived_at=now, archive_reason=FADED, updated_at=now)
    )
    for count, reason in ((faded, FADED), (expired, EXPIRED)):
        if count:
            gone = Memory.objects.for_user(user).filter(archived_at=now, archive_reason=reason)
            telling.archived(user, gone.defer("embedding"), reason=reason)
    return Archived(faded=faded, expired=expired)
