"""How far the estimate of a prompt's tokens is from what the provider counts."""

from __future__ import annotations

from statistics import median

from conversations.constants import RATIO_MAX, RATIO_MIN, RATIO_STEP, RATIO_TURNS
from conversations.models import ComposedContext, Turn


def ratio(turn: Turn) -> float:
    """Counted tokens for one estimated, by the segment's last turns; 1.0 where none was counted.

    It moves in steps: with every small change of it the history would begin elsewhere, and the
    provider's cache would be of no use.
    """
    rows = ComposedContext.objects.for_user(turn.user_id).filter(
        turn__segment_id=turn.segment_id, counted_tokens__gt=0, tokens__gt=0
    )
    counts = rows.order_by("-turn__number").values_list("counted_tokens", "tokens")[:RATIO_TURNS]
    found = [counted / estimated for counted, estimated in counts]
    if not found:
        return 1.0
    return min(RATIO_MAX, max(RATIO_MIN, RATIO_STEP * round(median(found) / RATIO_STEP)))
