"""The main job, over HTTP: tell, collapse, be remembered; and nobody else hears of it."""

from __future__ import annotations

import uuid

import pytest

from conversations.models import Segment
from memory.models import Memory
from mira_site import isolation
from mira_site.accounts import services as accounts
from mira_site.accounts.models import User
from mira_site.llm.models import ModelCall
from tests.fake_anthropic import FakeAnthropic
from tests.flows.calling import Caller

TOLD = "My sister Vera is allergic to hazelnuts. She lives in Graz."
ASKED = "What is Vera allergic to?"

SUMMARY = {
    "trace": "On 28 November 2026 Alice told me that her sister Vera is allergic to hazelnuts.",
    "precis": "Alice told me of her sister Vera. She is allergic to hazelnuts.",
    "title": "Vera's allergy",
    "complexity": 1,
}
FACTS = {"memories": [{"text": "Alice's sister Vera is allergic to hazelnuts.", "messages": [1]}]}


@pytest.fixture
def alice_calls(live_mira: str, alice: User) -> Caller:
    return Caller(live_mira, accounts.issue_token(user=alice).token)


@pytest.fixture
def bob_calls(live_mira: str, bob: User) -> Caller:
    return Caller(live_mira, accounts.issue_token(user=bob).token)


def test_without_a_model_what_was_told_is_quoted_in_the_new_segment_and_to_nobody_else(
    alice_calls, bob_calls
):
    told = alice_calls.say(TOLD)
    assert told["surfaced"] == []

    collapsed = alice_calls.post("segments/collapse/")
    assert (collapsed.status, collapsed.json["status"]) == (200, "collapsed")
    memories = alice_calls.get("memories/").json["results"]
    assert any("hazelnuts" in memory["text"] for memory in memories)
    whole = alice_calls.get(f"segments/{collapsed.json['id']}/").json
    assert {row["id"] for row in whole["memories"]} == {row["id"] for row in memories}
    sources = {row["source"]["segment"] for row in memories}
    assert sources == {collapsed.json["id"]}

    asked = alice_calls.say(ASKED)
    assert "No language model is set up" in asked["reply"]["text"]
    assert "allergic to hazelnuts" in asked["reply"]["text"]
    assert {item["id"] for item in asked["surfaced"]} <= {row["id"] for row in memories}
    assert any("hazelnuts" in item["text"] for item in asked["surfaced"])
    segments = alice_calls.get("segments/").json["results"]
    assert [segment["status"] for segment in segments] == ["active", "collapsed"]
    recalled = alice_calls.post("memories/recall/", query=ASKED).json
    assert "hazelnuts" in recalled["context"]

    stranger = bob_calls.say(ASKED)
    assert stranger["surfaced"] == []
    assert "hazelnuts" not in stranger["reply"]["text"]
    recalled = bob_calls.post("memories/recall/", query=ASKED).json
    assert (recalled["items"], recalled["context"]) == ([], "")
    assert bob_calls.get("memories/").json["results"] == []
    assert bob_calls.get(f"turns/{asked['turn']}/").status == 404
    assert bob_calls.get(f"segments/{collapsed.json['id']}/").status == 404
    assert bob_calls.get(f"memories/{memories[0]['id']}/").status == 404


def test_with_a_model_it_is_streamed_validated_and_remembered(
    alice_calls, alice, bob_calls, fake_anthropic: FakeAnthropic
):
    fake_anthropic.on("reply").streams(["I will ", "keep it ", "in mind."], delay_s=0.1)
    events = list(alice_calls.stream("chat/", message=TOLD))
    kinds = [event["event"] for event in events]
    assert kinds[:2] == ["turn.started", "context.ready"]
    assert kinds[-1] == "turn.finished"
    deltas = [event["data"]["text"] for event in events if event["event"] == "text.delta"]
    assert len(deltas) >= 2
    assert "".join(deltas) == events[-1]["data"]["message"]["text"] == "I will keep it in mind."
    assert all(event["id"] == event["data"]["id"] for event in events)

    # A bad answer is repaired once, and a second bad one gives way to the fallback.
    fake_anthropic.on("summary").answers({**SUMMARY, "trace": ""}, times=1).answers(SUMMARY)
    fake_anthropic.on("extraction").answers({"memories": "none"})
    collapsed = alice_calls.post("segments/collapse/").json
    assert (collapsed["status"], collapsed["title"]) == ("collapsed", "Vera's allergy")
    with isolation.acting_as(alice.pk):
        assert Segment.objects.for_user(alice).get(pk=collapsed["id"]).is_summary_by_model
        calls = ModelCall.objects.for_user(alice).order_by("created_at")
        told = list(calls.values_list("job", "outcome"))
        assert Memory.objects.for_user(alice).filter(text__contains="hazelnuts").exists()
    assert told == [
        ("subcortical", "ok"),
        ("reply", "ok"),
        ("summary", "bad_answer"),
        ("summary", "ok"),
        ("extraction", "bad_answer"),
        ("extraction", "bad_answer"),
    ]

    fake_anthropic.on("reply").says("To hazelnuts.")
    asked = alice_calls.say(ASKED)
    assert asked["reply"]["text"] == "To hazelnuts."
    assert any("hazelnuts" in item["text"] for item in asked["surfaced"])
    prompt = fake_anthropic.seen("reply")[-1].prompt
    assert SUMMARY["trace"] in prompt
    assert prompt.index("<memories>\n") < prompt.index(ASKED)

    bob_calls.say(ASKED)
    assert "hazelnuts" not in fake_anthropic.seen("reply")[-1].prompt


def test_a_good_extraction_is_kept_with_its_source(alice_calls, fake_anthropic: FakeAnthropic):
    fake_anthropic.on("summary").answers(SUMMARY)
    fake_anthropic.on("extraction").answers(FACTS)
    turn = alice_calls.say(TOLD)
    alice_calls.post("segments/collapse/")
    (memory,) = alice_calls.get("memories/").json["results"]
    assert memory["text"] == "Alice's sister Vera is allergic to hazelnuts."
    told = alice_calls.get(f"turns/{turn['turn']}/").json["message"]
    (source,) = memory["source"]["messages"]
    assert told["id"] in (source, source.get("id") if isinstance(source, dict) else source)


class TestEventStream:
    def test_events_come_while_the_model_still_speaks(self, alice_calls, fake_anthropic):
        fake_anthropic.on("reply").streams(["more "] * 40, delay_s=0.1)
        stream = alice_calls.stream("chat/", message="Count.")
        first = next(event for event in stream if event["event"] == "text.delta")
        turn_id = first["data"]["turn"]
        assert alice_calls.get(f"turns/{turn_id}/").json["status"] == "running"
        assert alice_calls.post(f"turns/{turn_id}/stop/").status == 200
        last = list(stream)[-1]
        assert last["event"] == "turn.stopped"
        assert last["data"]["message"]["is_partial"]

    def test_the_same_client_id_replays_the_same_turn(self, alice_calls, fake_anthropic):
        given = {"message": "Hello", "client_id": str(uuid.uuid4())}
        first = list(alice_calls.stream("chat/", **given))
        again = list(alice_calls.stream("chat/", **given))
        assert first == again
        assert len(fake_anthropic.seen("reply")) == 1

    def test_a_refusal_is_a_problem_and_no_stream(self, live_mira, alice_calls):
        answered = Caller(live_mira).post("chat/", message="Hello")
        assert (answered.status, answered.content_type) == (401, "application/problem+json")
        assert alice_calls.post("chat/", message=" ").status == 400
