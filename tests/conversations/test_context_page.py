"""The page and the operation that show what MIRA saw in a turn, to its owner alone."""

from __future__ import annotations

import uuid
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from conversations import veil
from conversations.models import (
    CompactionBrief,
    ComposedContext,
    Message,
    Observation,
    Segment,
    SubcorticalRecord,
    Turn,
)
from memory import services as memory
from memory.models import Memory
from mira_site.llm.models import ModelCall
from tests.conversations.talking import know, put_to_rest, said, say, tell

PAGE = "/context/"


def address(turn: Turn) -> str:
    return f"/context/{turn.pk}/"


def operation(turn: Turn) -> str:
    return f"/api/v1/turns/{turn.pk}/context/"


def asked(turn: Turn) -> Message:
    return turn.messages.get(role=Message.Role.USER)


@pytest.fixture
def page(alice, client):
    """The text of a page as Alice sees it."""
    client.force_login(alice)

    def text(where: str) -> str:
        response = client.get(where)
        assert response.status_code == 200
        return response.content.decode()

    return text


@pytest.fixture
def talk(me, fake_anthropic) -> list[Turn]:
    """Two turns about a boat, with all that may stand around them."""
    fake_anthropic.on("reply").says("She is called Merula.")
    fake_anthropic.on("subcortical").answers(
        {"phrases": ["name of the <boat>"], "entities": ["Merula"], "complexity": "complex"}
    )
    know(me, "Alice's boat is called Merula.")
    first = say(me, "How is my <i>boat</i> called?")
    Observation.objects.create(
        user=me,
        segment=first.segment,
        turn=first,
        action="concern",
        severity="critical",
        failure="The year was missed.",
        guidance="Name the <b>year</b>.",
        evidence_ids=[str(asked(first).pk)],
        turn_number=first.number,
        expires_after_turn=first.number + 2,
        created_at=timezone.now(),
    )
    CompactionBrief.objects.create(
        user=me,
        segment=first.segment,
        text="We spoke of the sea.",
        covered_to_position=0,
        covered_from_at=first.created_at,
        covered_to_at=first.created_at,
        updated_at=timezone.now(),
    )
    return [first, say(me, "And when was she built?")]


class TestPage:
    def test_it_shows_the_sections_in_the_order_of_the_prompt(self, page, talk):
        text = page(address(talk[1])).partition('id="context-constant"')[2]
        titles = (
            "Always the same",
            "Who I am",
            "The same throughout this part",
            "Who you are",
            "Earlier in this part",
            "Our words",
            "New with every message",
            "What time it is",
            "What came to mind",
            "Advice from the second pair",
        )
        places = [text.index(f">{title}") for title in titles]
        assert places == sorted(places)
        assert "You are MIRA" in text

    def test_what_people_and_models_wrote_is_text_and_no_markup(self, page, talk):
        text = page(address(talk[1])) + page(address(talk[0]))
        for written in ("<i>boat", "<b>year", "name of the <boat>"):
            assert written not in text
        assert "name of the &lt;boat&gt;" in text
        assert "Name the &lt;b&gt;year" in text

    def test_it_tells_what_was_estimated_and_what_the_model_counted(self, page, talk):
        composed = ComposedContext.objects.for_user(talk[1].user).get(turn=talk[1])
        assert composed.counted_tokens > 0
        text = page(address(talk[1]))
        assert f"<strong>{composed.counted_tokens:,}</strong>" in text
        assert f"I had estimated {composed.tokens:,}" in text

    def test_it_links_to_the_messages_that_went_along(self, page, talk):
        text = page(address(talk[1]))
        for message in (asked(talk[0]), asked(talk[1])):
            assert f"/?at={message.pk}" in text

    def test_it_shows_the_reflex_the_advice_and_the_brief(self, page, talk):
        text = page(address(talk[1]))
        for told in (
            "A small fast model did it",
            "something to think about",
            "A concern, of weight",
            "2 turns left",
            "The year was missed.",
            "We spoke of the sea.",
            f'/?at={asked(talk[0]).pk}">message 1</a>',
        ):
            assert told in text

    def test_advice_is_before_the_turns_it_is_for_and_past_in_others(self, page, me, talk):
        assert "There was no advice for this answer" in page(address(talk[0]))
        later = [say(me, f"And number {number}?") for number in range(2)]
        assert "1 turn left" in page(address(later[0]))
        text = page(address(later[1]))
        assert "There was no advice for this answer" in text
        assert "Other looks at this part (1)" in text

    def test_rules_say_why_they_stood_in(self, page, me, fake_anthropic):
        fake_anthropic.on("subcortical").says("not json", times=2)
        fake_anthropic.on("reply").says("Good morning.")
        assert "because the fast model gave no usable answer" in page(address(say(me)))

    def test_it_tells_what_the_turn_cost_by_job(self, page, me, talk):
        calls = ModelCall.objects.for_user(me).filter(turn_id=talk[1].pk)
        assert {call.job for call in calls} == {"reply", "subcortical"}
        calls.filter(job="reply").update(cost=Decimal("0.0123"))
        text = page(address(talk[1]))
        assert "The answer" in text and "Understanding your message" in text
        assert "About $0.0123 in all" in text

    def test_the_navigation_leads_to_the_newest_turn_and_from_turn_to_turn(self, page, talk):
        assert f'href="{PAGE}"' in page("/memories/")
        newest = page(PAGE)
        assert "And when was she built?" in newest
        assert f'href="{address(talk[0])}" rel="prev"' in newest
        assert f'href="{address(talk[1])}" rel="next"' in page(address(talk[0]))

    def test_before_anything_was_said_it_says_so(self, page):
        assert "Nothing was said yet" in page(PAGE)

    def test_a_turn_that_still_waits_says_so(self, page, me):
        assert "I am still answering" in page(address(tell(me)))

    def test_without_a_model_there_is_no_prompt_to_show(self, page, me):
        text = page(address(say(me)))
        assert "No model was asked for this answer. I quoted what I remember" in text
        assert "because no model is set up on this server" in text
        assert "it cost nothing" in text

    def test_a_broken_answer_and_one_of_long_ago_are_told_apart(self, page, me, talk):
        first, last = talk
        ComposedContext.objects.for_user(me).delete()
        Turn.objects.for_user(me).filter(pk=last.pk).update(status=Turn.Status.FAILED)
        assert "broke off before it was written" in page(address(last))
        assert "nothing is kept." in page(address(first))
        put_to_rest(me)
        Segment.objects.for_user(me).update(collapsed_at=timezone.now() - timedelta(days=31))
        for turn in talk:
            assert "came to rest more than 30 days ago" in page(address(turn))

    def test_a_section_that_was_deleted_since_says_so(self, page, me, talk):
        memory.forget(user=me, memory_id=Memory.objects.for_user(me).get().pk)
        text = page(address(talk[0]))
        assert "Deleted since: something in it was forgotten or changed." in text
        assert "boat is called Merula" not in text

    def test_it_reads_the_same_few_tables_however_long_the_segment(
        self, page, me, fake_anthropic, django_assert_max_num_queries
    ):
        fake_anthropic.on("reply").says("I see.")
        turns = [say(me, f"Number {number}.") for number in range(6)]
        with django_assert_max_num_queries(24):
            page(address(turns[-1]))


class TestOperation:
    def test_it_tells_the_same(self, api, talk):
        told = api.get(operation(talk[1])).json()
        assert (told["turn"], told["number"]) == (str(talk[1].pk), 2)
        names = [(one["slot"], one["name"]) for one in told["prompt"]["sections"]]
        assert names[0] == ("constant", "persona")
        assert ("hud", "guidance") in names
        assert all(one["text"] and one["tokens"] > 0 for one in told["prompt"]["sections"])
        assert [one["role"] for one in told["prompt"]["messages"]] == ["user", "assistant", "user"]
        assert told["subcortical"]["phrases"][0] == "name of the <boat>"
        assert told["advice"][0]["guidance"] == "Name the <b>year</b>."
        assert told["brief"]["text"] == "We spoke of the sea."
        reply = next(one for one in told["spent"] if one["job"] == "reply")
        assert reply["cache_share"] > 0.5

    def test_the_estimates_of_the_parts_make_up_the_whole(self, api, talk):
        prompt = api.get(operation(talk[1])).json()["prompt"]
        parts = sum(one["tokens"] for one in prompt["sections"])
        tokens = prompt["tokens"]
        assert parts + tokens["history"] + tokens["tools"] == tokens["estimated"]

    def test_a_turn_without_records_has_none(self, api, me):
        told = api.get(operation(tell(me))).json()
        assert (told["prompt"], told["subcortical"], told["spent"]) == (None, None, [])


class TestBriefInTheThread:
    def test_it_is_told_with_the_last_message_that_it_tells(self, api, me, talk):
        brief = CompactionBrief.objects.for_user(me).get()
        brief.covered_to_position = asked(talk[0]).position + 1
        brief.save()
        told = api.get("/api/v1/brief/").json()["brief"]
        assert told["text"] == "We spoke of the sea."
        assert told["message"] == str(said(talk[0]).pk)

    def test_a_stranger_and_a_fresh_part_have_none(self, stranger, api, me):
        assert stranger.get("/api/v1/brief/").json() == {"brief": None}
        assert api.get("/api/v1/brief/").json() == {"brief": None}


class TestOthers:
    def test_nobody_else_sees_it(self, client, bob, stranger, talk):
        client.force_login(bob)
        assert client.get(address(talk[0])).status_code == 404
        assert stranger.get(operation(talk[0])).status_code == 404
        assert "Nothing was said yet" in client.get(PAGE).content.decode()

    def test_it_takes_being_signed_in(self, client, talk, db):
        assert client.get(PAGE).status_code == 302
        assert client.get(address(talk[0])).status_code == 302
        assert client.get(operation(talk[0])).status_code == 401

    def test_a_turn_that_is_not_there_is_not_found(self, api, client, alice):
        client.force_login(alice)
        nowhere = uuid.uuid4()
        assert client.get(f"/context/{nowhere}/").status_code == 404
        assert api.get(f"/api/v1/turns/{nowhere}/context/").status_code == 404


def test_what_is_off_the_record_leaves_no_record(me, fake_anthropic, page):
    fake_anthropic.on("reply").says("Between us.")
    veil.draw(me, at=timezone.now())
    turn = say(me, "Nobody shall know.")
    assert turn.is_off_record
    assert not ComposedContext.objects.for_user(me).exists()
    assert not SubcorticalRecord.objects.for_user(me).exists()
    assert "This was off the record" in page(address(turn))
