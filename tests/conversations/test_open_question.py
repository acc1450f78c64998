"""What only the person can tell is asked at most once a day, and counts as asked if it came out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from conversations.models import Turn
from memory import truth
from memory.models import Conflict
from mira_site import isolation
from mira_site.accounts.models import User
from tests import messages_api
from tests.conversations.talking import know, reply, say
from tests.fake_anthropic import FakeAnthropic

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)


@pytest.fixture
def births(me: User) -> Conflict:
    older, newer = (know(me, f"Alice was born in {year} & <b>.") for year in (1990, 1991))
    return truth.conflict(me, older.id, newer.id, reasoning="Both cannot be true.", at=NOON)


def hud(fake: FakeAnthropic) -> str:
    blocks = messages_api.blocks(fake.seen("reply")[-1].json["messages"][-1])
    return next(block["text"] for block in blocks if block["text"].startswith("<hud>"))


def was_asked(fake: FakeAnthropic) -> bool:
    return "<open_question>" in hud(fake)


def test_mira_is_invited_to_ask_with_both_sides_escaped_and_named(
    me: User, births: Conflict, fake_anthropic: FakeAnthropic
) -> None:
    say(me, "Good morning.")
    (section,) = [
        part.partition("</open_question>")[0]
        for part in hud(fake_anthropic).split("<open_question>")[1:]
    ]
    assert "1990 &amp; &lt;b&gt;" in section
    assert f'<later id="mem_{births.newer_id.hex[:8]}"' in section


def test_it_is_asked_once_on_a_day_of_the_persons_own(
    me: User, births: Conflict, fake_anthropic: FakeAnthropic
) -> None:
    me.timezone = "Pacific/Auckland"
    me.save()
    midnight = datetime(2026, 11, 28, 11, tzinfo=UTC)  # in Auckland
    asked = []
    for minutes in (-120, -60, 5, 60):
        say(me, "Hello.", at=midnight + timedelta(minutes=minutes))
        asked.append(was_asked(fake_anthropic))
    assert asked == [True, False, True, False]


def test_a_turn_that_failed_has_not_asked(
    me: User, births: Conflict, fake_anthropic: FakeAnthropic
) -> None:
    fake_anthropic.on("reply").fails(401, times=1)
    assert say(me, at=NOON).status == Turn.Status.FAILED
    births.refresh_from_db()
    assert births.asked_at is None
    assert say(me, at=NOON + timedelta(minutes=1)).status == Turn.Status.DONE
    births.refresh_from_db()
    assert births.asked_at is not None


def test_what_is_settled_is_not_asked(
    me: User, births: Conflict, fake_anthropic: FakeAnthropic
) -> None:
    truth.resolve(me, births.id, keep="newer", at=NOON)
    say(me)
    assert not was_asked(fake_anthropic)


def test_without_a_model_it_is_a_plain_question(me: User, births: Conflict) -> None:
    first, second = (say(me, "Hello.", at=NOON + timedelta(minutes=at)) for at in (0, 5))
    assert "which is right?" in reply(first)
    assert "born in 1990" in reply(first)
    assert "born in 1991" in reply(first)
    assert "(/memories/questions/)" in reply(first)
    assert "which is right?" not in reply(second)


def test_nobody_is_asked_about_another_persons_memories(
    me: User, bob: User, births: Conflict, fake_anthropic: FakeAnthropic
) -> None:
    with isolation.acting_as(bob.pk):
        say(bob, "Hello.")
    assert not was_asked(fake_anthropic)
    births.refresh_from_db()
    assert births.asked_at is None
