"""What may come up at all: one rule for every path (spec memory 11.2, weakness 7).

Not archived, quarantined, muted or expired, and, unless the past is asked for, still true.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

# Whatever the time is, for raw SQL: alias `m`.
KEPT_BACK_SQL = """
    (m.archived_at IS NOT NULL OR m.quarantined_at IS NOT NULL OR m.muted_at IS NOT NULL)
"""
# The same rule for raw SQL: parameters `now` (timestamptz) and `past` (boolean) too. For columns in
# a process it is written once more, in index.py.
SQL = f"""
    NOT {KEPT_BACK_SQL}
    AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
    AND (%(past)s OR m.valid_until IS NULL OR m.valid_until > %(now)s)
"""


def visible(now: datetime, *, past: bool = False) -> Q:
    """The rule as a filter on Memory."""
    rule = Q(archived_at__isnull=True, quarantined_at__isnull=True, muted_at__isnull=True)
    rule &= Q(expires_at__isnull=True) | Q(expires_at__gt=now)
    if not past:
        rule &= Q(valid_until__isnull=True) | Q(valid_until__gt=now)
    return rule
