"""An answer that met the limit of its length says so, and can be gone on with; effort, retries."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from conversations import services
from conversations.models import ComposedContext, Message, SubcorticalRecord, Turn
from mira_site import errors, isolation
from mira_site.accounts.models import User
from mira_site.errors import Conflict
from tests import messages_api
from tests.conversations.talking import answer, heard, put_to_rest, reply, said, say
from tests.fake_anthropic import FakeAnthropic

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("embedder")]

STRAIGHT = {"phrases": ["the boat"], "complexity": "straightforward"}
COMPLEX = {"phrases": ["the boat"], "complexity": "complex"}


def cut(me: User, fake: FakeAnthropic, text: str = "One, two, three and") -> Turn:
    fake.on("reply").says(text, times=1, stop_reason="max_tokens").says("four, five.")
    return say(me, "Count.")


def test_a_cut_answer_is_whole_as_a_turn_and_marked_as_cut(
    me: User, fake_anthropic: FakeAnthropic
) -> None:
    ended = cut(me, fake_anthropic)
    assert (ended.status, ended.stop_reason) == (Turn.Status.DONE, "max_tokens")
    assert (said(ended).is_cut, said(ended).is_partial) == (True, False)
    finished = heard(me)[-1].payload
    assert (finished["type"], finished["stop_reason"]) == ("turn.finished", "max_tokens")
    assert finished["message"]["is_cut"] is True


def test_it_is_continued_from_its_last_words_and_the_thread_stays_valid(
    me: User, fake_anthropic: FakeAnthropic
) -> None:
    first = cut(me, fake_anthropic)
    second = answer(services.continue_turn(user=me, turn_id=first.pk))
    assert (second.status, reply(second)) == (Turn.Status.DONE, "four, five.")
    assert not said(second).is_cut
    sent = fake_anthropic.seen("reply")[-1].json["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert messages_api.text_of(sent[1]) == "One, two, three and"
    assert "<last_words>One, two, three and</last_words>" in messages_api.text_of(sent[2])
    say(me, "Thank you.")
    assert "cut_answer" not in messages_api.text_of(
        fake_anthropic.seen("reply")[-1].json["messages"][-1]
    )


def test_asking_for_the_rest_twice_asks_once(me: User, fake_anthropic: FakeAnthropic) -> None:
    first = cut(me, fake_anthropic)
    once = services.continue_turn(user=me, turn_id=first.pk)
    assert services.continue_turn(user=me, turn_id=first.pk).pk == once.pk
    assert Message.objects.for_user(me).filter(role="user").count() == 2


def test_only_the_newest_cut_answer_is_continued(me: User, fake_anthropic: FakeAnthropic) -> None:
    first = cut(me, fake_anthropic)
    whole = say(me, "Enough.")
    for ended in (first, whole):
        with pytest.raises(Conflict):
            services.continue_turn(user=me, turn_id=ended.pk)


def test_what_has_come_to_rest_is_not_continued(me: User, fake_anthropic: FakeAnthropic) -> None:
    first = cut(me, fake_anthropic)
    put_to_rest(me)
    with pytest.raises(Conflict):
        services.continue_turn(user=me, turn_id=first.pk)


def test_over_http_it_is_the_persons_own(
    api: APIClient, stranger: APIClient, alice: User, fake_anthropic: FakeAnthropic
) -> None:
    with isolation.acting_as(alice.pk):
        first = cut(alice, fake_anthropic)
    address = f"/api/v1/turns/{first.pk}/continue/"
    assert stranger.post(address).status_code == 404
    made = api.post(address)
    assert made.status_code == 202
    assert made.json()["message"]["text"] == services.GO_ON
    with isolation.acting_as(alice.pk):
        whole = Turn.objects.for_user(alice).get(pk=made.json()["id"])
        assert said(whole).text == "four, five."
    assert api.post(f"/api/v1/turns/{whole.pk}/continue/").status_code == 409


@pytest.mark.parametrize(("understood", "effort"), [(STRAIGHT, "medium"), (COMPLEX, "high")])
def test_a_hard_message_is_answered_with_more_effort(
    me: User, fake_anthropic: FakeAnthropic, settings, understood: dict, effort: str
) -> None:
    settings.MIRA_MODEL = "claude-sonnet-5-5"
    fake_anthropic.on("subcortical").answers(understood)
    ended = say(me, "Tell me about the boat.")
    assert fake_anthropic.seen("reply")[-1].json["output_config"] == {"effort": effort}
    assert ended.effort == effort
    assert ComposedContext.objects.for_user(me).get(turn=ended).effort == effort


def test_the_persons_own_choice_of_effort_stands_above(
    me: User, fake_anthropic: FakeAnthropic, settings
) -> None:
    settings.MIRA_MODEL = "claude-sonnet-5-5"
    me.preferences["effort"] = "low"
    me.save()
    fake_anthropic.on("subcortical").answers(COMPLEX)
    assert say(me, "Tell me about the boat.").effort == "low"


def test_by_rule_the_model_keeps_its_own_effort(me: User, fake_anthropic: FakeAnthropic) -> None:
    fake_anthropic.on("subcortical").says("not json")
    assert say(me, "Tell me about the boat.").effort == ""
    assert SubcorticalRecord.objects.for_user(me).get().by == "rule"


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(401, False), (400, False), (404, False)],
)
def test_an_error_says_truly_whether_trying_again_may_help(
    me: User, fake_anthropic: FakeAnthropic, status: int, retryable: bool
) -> None:
    fake_anthropic.on("reply").fails(status)
    say(me)
    assert heard(me)[-1].payload["error"]["retryable"] is retryable


def test_codes_and_what_they_say_of_trying_again() -> None:
    assert errors.is_retryable("model_unavailable")
    assert errors.is_retryable("interrupted")
    assert errors.is_retryable("empty_reply")
    assert not errors.is_retryable("model_context_too_long")
    assert not errors.is_retryable("model_bad_key")
