"""A monthly cap lands softly: told before, answered by quotes after, and nothing is lost."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine
from django.utils import timezone

from conversations import collapse
from conversations.models import Message, Segment, Turn
from mira_site.accounts import services as accounts
from mira_site.errors import MiraError
from mira_site.llm import budget
from mira_site.llm.models import ModelCall
from tests.conversations.talking import heard, know, put_to_rest, quiet, reply, say

pytestmark = pytest.mark.django_db


def spend(user, dollars: str) -> None:
    ModelCall.objects.create(
        user=user, job="reply", tier="reply", model="m", outcome="ok", cost=Decimal(dollars)
    )
    budget.spent_more()


def cap(user, dollars: str | None) -> None:
    wanted = Decimal(dollars) if dollars else None
    accounts.update_profile(user=user, chosen={"monthly_cap": wanted})


def notices(user) -> list[str]:
    return [event.payload["text"] for event in heard(user) if event.type == "notice"]


def test_from_80_percent_on_it_is_told_once_and_goes_on(me, fake_anthropic):
    fake_anthropic.on("reply").says("Hello.")
    cap(me, "10")
    spend(me, "8.50")
    assert [reply(say(me)), reply(say(me))] == ["Hello.", "Hello."]
    [told] = notices(me)
    assert "Of your monthly cap of $10.00, $8.50 are spent." in told


def test_a_message_beyond_the_cap_is_kept_and_answered_with_what_is_remembered(me, fake_anthropic):
    know(me, "Vera is allergic to nuts.")
    cap(me, "5")
    spend(me, "5")
    asked = say(me, "What is Vera allergic to?")
    assert (asked.status, asked.model) == (Turn.Status.DONE, "offline")
    assert "Your monthly cap of $5.00 is reached" in reply(asked)
    assert "/settings/usage/" in reply(asked)
    assert "Vera is allergic to nuts." in reply(asked)
    assert fake_anthropic.requests == []
    assert Message.objects.for_user(me).filter(text="What is Vera allergic to?").exists()


def test_once_it_is_raised_the_next_answer_is_a_models(me, fake_anthropic):
    fake_anthropic.on("reply").says("Hello.")
    cap(me, "5")
    spend(me, "5")
    say(me)
    cap(me, None)
    assert reply(say(me)) == "Hello."


def test_a_segment_waits_for_its_trace_and_gets_it_when_the_cap_is_lifted(me, fake_anthropic):
    fake_anthropic.on("reply").says("Graz is lovely.")
    segment = quiet(me, "I moved to Graz in May.")
    cap(me, "5")
    spend(me, "5")
    with pytest.raises(MiraError, match="cap"):
        collapse.run(user=me, segment_id=segment.pk)
    waiting = Segment.objects.for_user(me).get(pk=segment.pk)
    assert waiting.status == Segment.Status.COLLAPSING
    assert waiting.summarised_at is None
    cap(me, None)
    with time_machine.travel(timezone.now() + timedelta(days=1)):
        done = collapse.run(user=me, segment_id=segment.pk)
    assert done is not None
    assert done.is_summary_by_model
    assert Message.objects.for_user(me).count() == 2


def test_without_a_cap_a_segment_comes_to_rest_as_ever(me, fake_anthropic):
    spend(me, "1000")
    say(me, "I moved to Graz in May.")
    assert put_to_rest(me).status == Segment.Status.COLLAPSED
