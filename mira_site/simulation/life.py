"""A story lived with MIRA, day by day, through the doors that people and schedulers use."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import time_machine
from django.db import connection
from django.test.utils import override_settings
from django.utils import timezone

from conversations import collapse, services, turn
from conversations.models import Message, Segment, Turn
from memory import scores, tasks, upkeep
from memory.models import Memory
from mira_site.accounts.models import User
from mira_site.celery import app
from mira_site.isolation import acting_as, all_users
from mira_site.simulation.model import Model
from mira_site.simulation.story import NAME, Day, Fact, Story
from tests import messages_api

ZONE = "Europe/Vienna"
SENTENCES_A_MESSAGE = 10
ROUNDS_MAX = 10  # of background work after one day: more means that it never ends


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and MIRA's answer."""

    fact: Fact
    on: date
    answer: str


@dataclass(slots=True)
class Lived:
    """What was seen on the way, for the claims to be held against."""

    user: User
    story: Story
    model: Model
    answers: list[Asked] = field(default_factory=list)
    events: dict[str, dict[date, float]] = field(default_factory=dict)  # key: importance by day
    at_leaving: dict[UUID, tuple[object, ...]] = field(default_factory=dict)
    at_return: dict[UUID, tuple[object, ...]] = field(default_factory=dict)

    @property
    def ended_at(self) -> datetime:
        return _at(self.story.days[-1].on, 21)


@contextmanager
def lived(story: Story, *, tell: Callable[[str], None] = lambda line: None) -> Iterator[Lived]:
    """Live the story in an account of its own, which is gone afterwards, whatever happens.

    Inside the block it is the evening of the last day, in the scope of that account. Tasks run in
    this process: no worker of a running MIRA touches the account.
    """
    with Model(story) as model, _own_model(model), _own_worker(), _unsynchronised():
        user = User.objects.create_user(f"simulated-{secrets.token_hex(4)}", timezone=ZONE)
        User.objects.filter(pk=user.pk).update(first_name=NAME)
        user.refresh_from_db()
        try:
            with acting_as(user.pk):
                life = Lived(user, story, model)
                _live(life, tell)
                with time_machine.travel(life.ended_at, tick=True):
                    yield life
        finally:
            with acting_as(user.pk):
                user.delete()


@contextmanager
def _own_model(model: Model) -> Iterator[None]:
    with override_settings(
        ANTHROPIC_BASE_URL=model.url,
        ANTHROPIC_API_KEY="",
        MIRA_MODEL=messages_api.REPLY_MODEL,
        MIRA_FAST_MODEL=messages_api.FAST_MODEL,
        MIRA_BACKGROUND_MODEL=messages_api.BACKGROUND_MODEL,
    ):
        yield


@contextmanager
def _own_worker() -> Iterator[None]:
    before = app.conf.task_always_eager, app.conf.task_eager_propagates
    app.conf.task_always_eager = app.conf.task_eager_propagates = True
    try:
        yield
    finally:
        app.conf.task_always_eager, app.conf.task_eager_propagates = before


@contextmanager
def _unsynchronised() -> Iterator[None]:
    """Commits of this connection do not wait for the disk: all of it is erased in the end."""
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET synchronous_commit")


def _live(life: Lived, tell: Callable[[str], None]) -> None:
    days = {day.on: day for day in life.story.days}
    left_on = life.story.days[life.story.leaves_after].on
    returns_on = life.story.days[life.story.leaves_after + 1].on
    for on in life.story.dates():
        if on == returns_on:
            with time_machine.travel(_at(on, 8), tick=True):
                life.at_return = _undated(life.user)
        if on in days:
            _use_day(life, days[on])
            tell(f"{on}: {len(days[on].said)} sentences, {len(days[on].asked)} questions")
        with time_machine.travel(_at(on, 20), tick=True):
            _schedulers(life.user)
            _note_events(life, on)
        if on == left_on:
            with time_machine.travel(_at(on, 22), tick=True):
                life.at_leaving = _undated(life.user)


def _use_day(life: Lived, day: Day) -> None:
    sentences = [said.sentence for said in day.said]
    starts = range(0, len(sentences), SENTENCES_A_MESSAGE)
    said = [" ".join(sentences[start : start + SENTENCES_A_MESSAGE]) for start in starts]
    minute = 0
    for text in said:
        _say(life.user, text, at=_at(day.on, 9, minute))
        minute += 3
    for fact in day.asked:
        answer = _say(life.user, fact.question, at=_at(day.on, 9, minute))
        life.answers.append(Asked(fact, day.on, answer))
        minute += 3
    with time_machine.travel(_at(day.on, 12), tick=True):
        segments = Segment.objects.for_user(life.user).exclude(status=Segment.Status.COLLAPSED)
        for segment_id in segments.values_list("pk", flat=True):
            collapse.run(user=life.user, segment_id=segment_id)


def _say(user: User, text: str, *, at: datetime) -> str:
    """What MIRA answers. Where the commit has not started the turn already, it is started here."""
    with time_machine.travel(at, tick=True):
        asked = services.accept_message(user=user, text=text, client_id=uuid.uuid4())
        turn.run(user_id=user.pk, turn_id=asked.pk)
    ended = Turn.objects.for_user(user).get(pk=asked.pk)
    if ended.status != Turn.Status.DONE:
        raise RuntimeError(f"A turn ended as {ended.status}: {ended.error_code}.")
    return str(ended.messages.get(role=Message.Role.ASSISTANT).text)


def _schedulers(user: User) -> None:
    """What beat would start by this evening, for this one person only."""
    now = timezone.now()
    with all_users("simulated scheduler", routine=True):
        is_due = user.pk in upkeep.users_with_dates(at=now)
    if is_due:
        tasks.rescore_dated(str(user.pk))
    for _ in range(ROUNDS_MAX):
        if not upkeep.run_due(user):
            return
    raise RuntimeError("The background work of one day did not come to an end.")


def _note_events(life: Lived, on: date) -> None:
    rows = Memory.objects.for_user(life.user).filter(happens_at__isnull=False)
    for text, importance in rows.values_list("text", "importance"):
        fact = life.model.fact(text)
        if fact is not None:
            life.events.setdefault(fact.key, {})[on] = importance


def _undated(user: User) -> dict[UUID, tuple[object, ...]]:
    """All that an absence must leave as it is, with the scores as they are by now."""
    scores.rescore(user, now=timezone.now())
    rows = Memory.objects.for_user(user).filter(happens_at__isnull=True, expires_at__isnull=True)
    fields = ("text", "importance", "archived_at", "valid_until", "quarantined_at")
    return {row[0]: row[1:] for row in rows.values_list("id", *fields)}


def _at(on: date, hour: int, minute: int = 0) -> datetime:
    return datetime.combine(on, time(hour), ZoneInfo(ZONE)) + timedelta(minutes=minute)
