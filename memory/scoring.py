"""How important a memory is, as a number from 0 to 1 (pure). docs/memory.md explains and plots it.

Source: the reference formula of `shared/spec/memory.md`, section 2, with three repairs:

- `neglect` lowers the argument of the sigmoid for a memory that nothing speaks for, so that it can
  sink below the floor of 0.119 and be archived (weaknesses 1 and 7 of its section 11.2). The
  fame of what it mentions does not speak for it, or nothing about somebody often spoken of would
  ever fade;
- `lift` is added, not multiplied, so that a coming date raises an old memory too (weakness 6);
- accesses are weights: being surfaced counts little and once per segment, being used counts whole
  (weakness 4).

All ages are in use-days, the days on which the person spoke with MIRA, so absence changes nothing.
Only what is tied to a date (`happens_in_days`, `expires_in_days`) runs on calendar days.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

CENTRE = 2.0  # argument at which the sigmoid is one half
MOMENTUM = 0.95  # share of an access that still counts after one idle use-day
RATE_MIN_AGE = 7  # use-days; keeps day-one accesses from looking like a habit
RATE_BASELINE = 0.02  # accesses per use-day: one in fifty
VALUE_WEIGHT = 0.8
LINK_STEP, LINK_KNEE, LINK_TAIL = 0.04, 10, 0.02
LINK_DAMPING = 0.05
ENTITY_STEP, ENTITY_KNEE, ENTITY_TAIL = 0.005, 50.0, 0.075
MENTION_STEP, MENTION_KNEE, MENTION_TAIL = 0.08, 5, 0.1
NEWNESS, NEWNESS_DECAY = 2.0, 0.133  # gone after about fifteen use-days
RECENCY = 0.015  # half after about 67 idle use-days
PAST_EVENT_FLOOR, PAST_EVENT_SPAN, PAST_EVENT_DAYS = 0.4, 0.4, 45.0
UPCOMING = ((1.0, 2.0), (7.0, 1.5), (14.0, 1.2))  # (within days, factor)
LIFT = ((1.0, 2.0), (7.0, 1.2), (14.0, 0.6))  # (within days, at least this much is added)
EXPIRY_GRACE_DAYS = 5.0
NEGLECT_GRACE = 16  # idle use-days before neglect begins: newness has just gone by then
NEGLECT_FORGIVEN = 0.1  # this much worth of its own forgives all neglect
SURFACED_WEIGHT = 0.25  # an access by being surfaced, at most once a segment
USED_WEIGHT = 1.0  # an access by being used in an answer, or called right
ARCHIVE_BELOW = 0.05  # importance under which a memory is archived, restorably
ARGUMENT_MIN = -50.0  # the score is 0.000 long before; exp() of much less overflows

ENTITY_TYPE_WEIGHTS = {  # spec 2.2, on our entity types
    "person": 1.0,
    "event": 0.9,
    "organisation": 0.8,
    "product": 0.7,
    "work": 0.6,
    "place": 0.5,
}


class Stakes(IntEnum):
    """What it would cost to have forgotten this. Decides how fast neglect works."""

    TRIVIAL = 0
    ORDINARY = 1
    VITAL = 2


NEGLECT_PER_USE_DAY = {Stakes.TRIVIAL: 0.25, Stakes.ORDINARY: 0.04, Stakes.VITAL: 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """What the score is made of.

    `age` and `idle` in use-days since it was stored and since it was last accessed; `accesses` is
    the sum of their weights; `links` counts inbound links; `entity_links` is the sum over its
    entities of link count × type weight; `happens_in_days` and `expires_in_days` are calendar days
    from now, negative in the past; `happens_in_days` is 0 on the whole day of the event.
    """

    age: int = 0
    idle: int = 0
    accesses: float = 0.0
    links: int = 0
    entity_links: float = 0.0
    mentions: int = 0
    happens_in_days: float | None = None
    expires_in_days: float | None = None
    stakes: Stakes = Stakes.ORDINARY


def importance(signals: Signals) -> float:
    """The score, rounded to three decimals."""
    return _score(signals, repaired=True)


def reference(signals: Signals) -> float:
    """The score of the reference without our repairs, for comparison; spec 2.4 lists its values."""
    return _score(signals, repaired=False)


def _score(signals: Signals, *, repaired: bool) -> float:
    expiry = _expiry_factor(signals.expires_in_days)
    if expiry is None:
        return 0.0
    own = _own_worth(signals)
    earned = own + _entity_hub(signals.entity_links)
    newness = max(0.0, NEWNESS - NEWNESS_DECAY * max(0, signals.age))
    steady = (earned + newness) / (1 + RECENCY * max(0, signals.idle))
    dated = steady * _date_factor(signals.happens_in_days)
    neglect = 0.0
    if repaired:
        lift = _lift(signals.happens_in_days)
        dated = max(dated, steady + lift)
        neglect = _neglect(signals, own)
    argument = max(ARGUMENT_MIN, dated * expiry - CENTRE - neglect)
    return round(1 / (1 + math.exp(-argument)), 3)


def _own_worth(signals: Signals) -> float:
    """What the memory has earned itself: by access, by links, by mention."""
    effective = signals.accesses * MOMENTUM ** max(0, signals.idle)
    rate = effective / max(RATE_MIN_AGE, signals.age)
    value = VALUE_WEIGHT * math.log(1 + rate / RATE_BASELINE)
    return value + _link_hub(signals.links) + _mention(signals.mentions)


def _link_hub(links: int) -> float:
    if links <= LINK_KNEE:
        return LINK_STEP * max(0, links)
    beyond = links - LINK_KNEE
    return LINK_STEP * LINK_KNEE + LINK_TAIL * beyond / (1 + LINK_DAMPING * beyond)


def _entity_hub(strength: float) -> float:
    if strength <= ENTITY_KNEE:
        return ENTITY_STEP * max(0.0, strength)
    return ENTITY_STEP * ENTITY_KNEE + ENTITY_TAIL * math.log(strength / ENTITY_KNEE)


def _mention(mentions: int) -> float:
    if mentions <= MENTION_KNEE:
        return MENTION_STEP * max(0, mentions)
    return MENTION_STEP * MENTION_KNEE + MENTION_TAIL * math.log(1 + mentions - MENTION_KNEE)


def _date_factor(happens_in_days: float | None) -> float:
    """Spec 2.3."""
    if happens_in_days is None:
        return 1.0
    if happens_in_days < 0:
        return PAST_EVENT_FLOOR + PAST_EVENT_SPAN * (1 - _past(happens_in_days))
    return next((factor for within, factor in UPCOMING if happens_in_days <= within), 1.0)


def _lift(happens_in_days: float | None) -> float:
    if happens_in_days is None or happens_in_days < 0:
        return 0.0
    return next((lift for within, lift in LIFT if happens_in_days <= within), 0.0)


def _neglect(signals: Signals, own_worth: float) -> float:
    """How far a memory that nothing speaks for has sunk.

    A date still to come holds it up; after the date neglect comes in by and by, or what was noted
    long before an event would be gone the day after it.
    """
    idle = max(0, min(signals.age, signals.idle) - NEGLECT_GRACE)
    unforgiven = max(0.0, 1 - own_worth / NEGLECT_FORGIVEN)
    return NEGLECT_PER_USE_DAY[signals.stakes] * idle * unforgiven * _past(signals.happens_in_days)


def _past(happens_in_days: float | None) -> float:
    """0 until the event, 1 from PAST_EVENT_DAYS after it on, and without one."""
    if happens_in_days is None:
        return 1.0
    return min(1.0, max(0.0, -happens_in_days / PAST_EVENT_DAYS))


def _expiry_factor(expires_in_days: float | None) -> float | None:
    """1 until it expires, falling to 0 within the grace; None after it."""
    if expires_in_days is None or expires_in_days >= 0:
        return 1.0
    past = -expires_in_days
    return None if past > EXPIRY_GRACE_DAYS else max(0.0, 1 - past / EXPIRY_GRACE_DAYS)
