"""The thread over HTTP: shapes, refusals, pages, search."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from conversations.models import Message, SurfacedMemory, Turn
from mira_site import isolation
from mira_site.accounts import services as accounts
from tests.conversations.talking import answer, know, put_to_rest, quiet, say, tell

CHAT = "/api/v1/chat/"
MESSAGES = "/api/v1/messages/"
SEARCH = "/api/v1/messages/search/"
SEGMENTS = "/api/v1/segments/"
NOWHERE = "00000000-0000-4000-8000-000000000000"

MESSAGE_KEYS = {
    "id", "position", "role", "text", "content", "created_at", "edited_at", "segment", "turn",
    "turn_status", "error", "is_partial", "is_cut", "is_quoted", "is_off_record",
    "surfaced", "tools",
    "attachments",
}  # fmt: skip
TURN_KEYS = {
    "id", "status", "client_id", "attempt", "message", "reply", "surfaced", "usage", "model",
    "effort", "stop_reason", "error", "created_at",
}  # fmt: skip
SEGMENT_KEYS = {
    "id", "status", "title", "opened_at", "precis", "trace", "complexity", "last_message_at",
    "collapsed_at", "collapse_asked_at", "reopenable_until", "message_count",
}  # fmt: skip
USAGE_KEYS = {"input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"}


def is_problem(response, status: int) -> dict:
    body = response.json()
    assert response.status_code == body["status"] == status
    assert response.headers["Content-Type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} <= set(body)
    return body


@pytest.mark.django_db(transaction=True)
class TestChat:
    def test_the_answer_has_the_shape_of_the_contract(self, api, alice):
        with isolation.acting_as(alice.pk):
            kept = know(alice, "Vera is allergic to nuts.")
        response = api.post(CHAT, {"message": "What is Vera allergic to?"}, format="json")
        body = response.json()
        assert response.status_code == 200
        assert set(body) == {"turn", "status", "reply", "surfaced", "usage", "error"}
        assert set(body["reply"]) == {"id", "text", "created_at"}
        assert body["reply"]["created_at"].endswith("Z")
        assert (body["status"], body["error"]) == ("done", None)
        (surfaced,) = body["surfaced"]
        assert {"id", "text", "why"} <= set(surfaced)
        assert surfaced["id"] == str(kept.pk)
        assert set(body["usage"]) == USAGE_KEYS

    def test_the_same_client_id_gives_the_same_answer(self, api):
        given = {"message": "Hello", "client_id": str(uuid.uuid4())}
        first, again = (api.post(CHAT, given, format="json").json() for _ in range(2))
        assert first == again

    def test_a_failure_is_told_in_the_answer(self, api, fake_anthropic):
        fake_anthropic.on("reply").fails(401)
        body = api.post(CHAT, {"message": "Hello"}, format="json").json()
        assert (body["status"], body["reply"]) == ("failed", None)
        assert body["error"]["code"] == "model_bad_key"

    def test_while_a_turn_is_open_it_is_a_conflict(self, api, alice, monkeypatch):
        monkeypatch.setattr("conversations.services.queue_turn", lambda turn: None)
        with isolation.acting_as(alice.pk):
            tell(alice)
        assert (
            "still answering"
            in is_problem(api.post(CHAT, {"message": "And?"}, format="json"), 409)["detail"]
        )

    def test_the_active_segment_is_put_to_rest_on_demand(self, api, alice):
        with isolation.acting_as(alice.pk):
            say(alice, "I live in Graz and work as a baker.")
        response = api.post(SEGMENTS + "collapse/")
        body = response.json()
        assert (response.status_code, body["status"]) == (200, "collapsed")
        assert set(body) == SEGMENT_KEYS
        assert body["message_count"] == 2
        is_problem(api.post(SEGMENTS + "collapse/"), 409)

    def test_a_token_does_as_well_as_a_session_and_sees_its_account_alone(self, alice, bob):
        with isolation.acting_as(bob.pk):
            know(bob, "Vera is allergic to nuts.")
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Token {accounts.issue_token(user=alice).token}")
        body = client.post(CHAT, {"message": "What is Vera allergic to?"}, format="json").json()
        assert (body["status"], body["surfaced"]) == ("done", [])
        assert len(client.get(MESSAGES).json()["results"]) == 2


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "message"),
        ({"message": ""}, "message"),
        ({"message": "  \n"}, "message"),
        ({"message": "a\x00b"}, "message"),
        ({"message": "x" * 100_001}, "message"),
        ({"message": "Hi", "client_id": "1"}, "client_id"),
        ({"message": "Hi", "attachments": [NOWHERE]}, "attachments"),
        ({"message": ["Hi"]}, "message"),
    ],
)
def test_a_message_that_cannot_be_taken_is_refused_by_the_name_of_its_field(api, given, field):
    body = is_problem(api.post(CHAT, given, format="json"), 400)
    assert list(body["errors"]) == [field]


def test_a_body_that_is_no_json_is_refused(api):
    is_problem(api.post(CHAT, "{", content_type="application/json"), 400)


OPERATIONS = [
    ("post", CHAT),
    ("get", f"/api/v1/turns/{NOWHERE}/"),
    ("post", f"/api/v1/turns/{NOWHERE}/stop/"),
    ("post", f"/api/v1/turns/{NOWHERE}/retry/"),
    ("get", MESSAGES),
    ("get", SEARCH + "?q=hello"),
    ("get", SEGMENTS),
    ("get", f"{SEGMENTS}{NOWHERE}/"),
    ("post", SEGMENTS + "collapse/"),
]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_without_signing_in_nothing_is_to_be_had(db, method, path):
    is_problem(getattr(APIClient(), method)(path), 401)


class TestSomebodyElse:
    @pytest.fixture
    def theirs(self, alice) -> Turn:
        with isolation.acting_as(alice.pk):
            turn = say(alice, "My secret is a boat.")
            put_to_rest(alice)
            return turn

    def test_finds_nothing_under_the_ids(self, stranger, theirs):
        with isolation.acting_as(theirs.user_id):
            message = theirs.messages.first()
        for method, path in [
            ("get", f"/api/v1/turns/{theirs.pk}/"),
            ("post", f"/api/v1/turns/{theirs.pk}/stop/"),
            ("post", f"/api/v1/turns/{theirs.pk}/retry/"),
            ("get", f"{SEGMENTS}{theirs.segment_id}/"),
            ("get", f"{MESSAGES}?at={message.pk}"),
        ]:
            is_problem(getattr(stranger, method)(path), 404)

    def test_sees_nothing_in_lists_and_searches(self, stranger, theirs):
        assert stranger.get(MESSAGES).json()["results"] == []
        assert stranger.get(SEGMENTS).json()["results"] == []
        found = stranger.get(SEARCH, {"q": "secret boat"}).json()
        assert found == {"results": [], "segments": []}


class TestTurns:
    def test_a_turn_is_told_whole(self, api, me):
        know(me, "Vera is allergic to nuts.")
        turn = say(me, "What is Vera allergic to?")
        body = api.get(f"/api/v1/turns/{turn.pk}/").json()
        assert set(body) == TURN_KEYS
        assert set(body["message"]) == set(body["reply"]) == MESSAGE_KEYS
        assert (body["status"], body["attempt"], body["model"]) == ("done", 1, "offline")
        assert body["surfaced"] == body["reply"]["surfaced"] != []
        assert set(body["usage"]) == USAGE_KEYS

    def test_a_queued_turn_is_stopped_and_taken_up_again(self, api, me):
        turn = tell(me)
        assert api.post(f"/api/v1/turns/{turn.pk}/stop/").json()["status"] == "stopped"
        response = api.post(f"/api/v1/turns/{turn.pk}/retry/")
        assert (response.status_code, response.json()["status"]) == (202, "queued")
        assert response.json()["attempt"] == 2

    def test_an_answered_turn_is_not_answered_again(self, api, me, fake_anthropic):
        is_problem(api.post(f"/api/v1/turns/{say(me).pk}/retry/"), 409)


class TestMessages:
    @pytest.fixture
    def thread(self, me) -> list[Message]:
        """Ten messages in two segments, oldest first."""
        quiet(me, "One.", "Two.", "Three.")
        put_to_rest(me)
        for text in ("Four.", "Five."):
            say(me, text)
        return list(Message.objects.for_user(me).order_by("position"))

    @staticmethod
    def ids(page: dict) -> list[str]:
        return [row["id"] for row in page["results"]]

    def test_the_newest_come_first_and_next_leads_to_the_oldest(self, api, thread):
        page = api.get(MESSAGES, {"page_size": 4}).json()
        assert page["previous"] is None
        seen = self.ids(page)
        while page["next"]:
            page = api.get(page["next"]).json()
            seen += self.ids(page)
        assert seen == [str(message.pk) for message in reversed(thread)]

    def test_previous_leads_back_to_the_newest(self, api, thread):
        page = api.get(MESSAGES, {"at": str(thread[0].pk), "page_size": 4}).json()
        assert page["next"] is None
        seen = self.ids(page)
        while page["previous"]:
            page = api.get(page["previous"]).json()
            seen = self.ids(page) + seen
        assert seen == [str(message.pk) for message in reversed(thread)]

    def test_at_gives_the_page_around_a_message(self, api, thread):
        page = api.get(MESSAGES, {"at": str(thread[5].pk), "page_size": 4}).json()
        assert self.ids(page) == [str(message.pk) for message in reversed(thread[4:8])]
        assert page["next"]
        assert page["previous"]

    def test_at_gives_the_page_around_what_was_said_first_at_a_date(self, api, me, thread):
        me.timezone = "Pacific/Auckland"
        me.save()
        midnight = datetime(2026, 3, 2, tzinfo=ZoneInfo("Pacific/Auckland"))
        for message in thread:
            before = message.position <= thread[3].position
            days = timedelta(seconds=-1) if before else timedelta(hours=message.position)
            message.created_at = midnight + days
            message.save()
        page = api.get(MESSAGES, {"at": "2026-03-02", "page_size": 4}).json()
        assert page["at"] == str(thread[4].pk)
        assert self.ids(page) == [str(message.pk) for message in reversed(thread[3:7])]
        later = api.get(MESSAGES, {"at": "2027-01-01T00:00:00Z", "page_size": 4}).json()
        assert later["at"] == str(thread[-1].pk)
        assert later["previous"] is None

    def test_a_message_whose_answer_failed_says_so_for_ever(self, api, me):
        turn = tell(me)
        Turn.objects.filter(pk=turn.pk).update(
            status="failed", error_code="llm_unavailable", error_detail="The model is away."
        )
        say(me, "And this?")
        *_, failed = api.get(MESSAGES).json()["results"]
        assert failed["turn_status"] == "failed"
        assert failed["error"]["detail"] == "The model is away."

    def test_each_message_carries_its_segment_and_an_answer_what_surfaced(self, api, me):
        know(me, "Vera is allergic to nuts.")
        say(me, "What is Vera allergic to?")
        answer, question = api.get(MESSAGES).json()["results"]
        assert set(answer) == MESSAGE_KEYS
        assert set(answer["segment"]) == {"id", "status", "title", "opened_at"}
        assert (answer["role"], question["role"]) == ("assistant", "user")
        assert [item["text"] for item in answer["surfaced"]] == ["Vera is allergic to nuts."]
        assert question["surfaced"] == []

    def test_the_number_of_queries_does_not_grow_with_the_page(
        self, api, thread, django_assert_max_num_queries
    ):
        with django_assert_max_num_queries(7):
            assert len(api.get(MESSAGES).json()["results"]) == 10

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ({"page_size": 0}, "page_size"),
            ({"page_size": 201}, "page_size"),
            ({"before": "x"}, "before"),
            ({"after": -1}, "after"),
            ({"at": "x"}, "at"),
        ],
    )
    def test_a_bad_parameter_is_named(self, api, query, field):
        assert list(is_problem(api.get(MESSAGES, query), 400)["errors"]) == [field]

    def test_an_empty_thread_is_an_empty_page(self, api):
        nothing = {"results": [], "at": None, "next": None, "previous": None}
        assert api.get(MESSAGES).json() == nothing
        is_problem(api.get(MESSAGES, {"at": "2026-01-01"}), 404)


class TestSearch:
    def test_words_are_found_and_marked_and_segments_by_their_meaning(self, api, me):
        quiet(me, "We sailed to Trieste in our wooden boat.", "The harbour was full of boats.")
        segment = put_to_rest(me)
        say(me, "I bake bread.")
        found = api.get(SEARCH, {"q": "boat"}).json()
        assert len(found["results"]) >= 2
        assert set(found["results"][0]) == {"message", "highlight"}
        assert any("**boat**" in hit["highlight"] for hit in found["results"])
        assert not any("bread" in hit["message"]["text"] for hit in found["results"])
        meant = api.get(SEARCH, {"q": "sailing on the sea"}).json()["segments"]
        assert [row["id"] for row in meant] == [str(segment.pk)]
        assert set(meant[0]) == {"id", "status", "title", "opened_at", "precis"}

    @pytest.mark.parametrize("q", ['"wooden boat"', "boat -bread", "boat or b", "Ω≈ç√", "((", "%%"])
    def test_any_query_is_answered(self, api, me, q):
        say(me, "We have a wooden boat.")
        assert api.get(SEARCH, {"q": q}).status_code == 200

    @pytest.mark.parametrize("q", ["", "a", "x" * 301, "a\x00b"])
    def test_a_query_of_the_wrong_size_is_refused(self, api, q):
        assert list(is_problem(api.get(SEARCH, {"q": q}), 400)["errors"]) == ["q"]

    def test_it_costs_a_fixed_number_of_queries(self, api, me, django_assert_max_num_queries):
        for number in range(4):
            say(me, f"Boat number {number}.")
        api.get(SEARCH, {"q": "boat"})
        with django_assert_max_num_queries(10):
            assert len(api.get(SEARCH, {"q": "boat"}).json()["results"]) == 4


class TestSegments:
    def test_the_manifest_is_newest_first_in_pages(self, api, me):
        at = timezone.now() - timedelta(days=9)
        segments = []
        for number in range(3):
            segments.append(say(me, f"Day {number}.", at=at + timedelta(days=number)).segment)
            put_to_rest(me)
        page = api.get(SEGMENTS, {"page_size": 2}).json()
        rows = page["results"] + api.get(page["next"]).json()["results"]
        assert [row["id"] for row in rows] == [str(one.pk) for one in reversed(segments)]
        assert set(rows[0]) == SEGMENT_KEYS
        assert {row["message_count"] for row in rows} == {2}

    def test_one_of_them_names_the_memories_made_of_it(self, api, me):
        say(me, "I live in Graz and work as a baker.")
        segment = put_to_rest(me)
        body = api.get(f"{SEGMENTS}{segment.pk}/").json()
        assert set(body) == SEGMENT_KEYS | {"memories"}
        assert "Graz" in body["memories"][0]["text"]
        assert body["trace"]

    def test_the_active_one_is_among_them(self, api, me):
        say(me)
        (row,) = api.get(SEGMENTS).json()["results"]
        assert (row["status"], row["collapsed_at"], row["trace"]) == ("active", None, "")


class TestPage:
    def test_it_starts_from_what_is_so_and_where_to_listen_from(self, client, me):
        turn = tell(me)
        client.force_login(me)
        response = client.get("/")
        assert response.status_code == 200
        state = response.context["chat_state"]
        assert state["open_turn"]["id"] == str(turn.pk)
        assert state["last_event_id"] == turn.resume_after
        assert state["user"]["id"] == str(me.pk)

    def test_it_opens_without_redis(self, client, me, redis_away):
        client.force_login(me)
        assert client.get("/").context["chat_state"]["last_event_id"] == "0"

    def test_whoever_is_signed_out_is_sent_to_sign_in(self, client, db):
        response = client.get("/")
        assert response.status_code == 302
        assert "login" in response.headers["Location"]


def test_accepting_a_message_takes_few_queries(me, django_assert_max_num_queries):
    say(me)
    with django_assert_max_num_queries(22):
        tell(me, "And another.")


def test_the_queries_of_a_turn_do_not_grow_with_its_memories(me):
    counts = []
    for number in range(8):
        know(me, f"Vera plays the cello in orchestra {number}.")
        say(me)  # what is noted once a segment is noted
        asked = tell(me, "In which orchestra does Vera play the cello?")
        with CaptureQueriesContext(connection) as queries:
            ended = answer(asked)
        assert SurfacedMemory.objects.for_user(me).filter(turn=ended).count() == number + 1
        counts.append(len(queries))
    assert max(counts) <= 72  # some more where something is noted for the first time
