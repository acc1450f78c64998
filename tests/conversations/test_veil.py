"""Off the record: it reads memory, never feeds it, and nothing of it is left."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from conversations import collapse, selectors, services, stream, tasks, veil, veil_words
from conversations.models import (
    ComposedContext,
    Message,
    Segment,
    SubcorticalRecord,
    SurfacedMemory,
    ToolCall,
    Turn,
    Veil,
)
from memory.models import Extraction, Memory, MemoryAccess
from mira_site import embeddings, isolation
from mira_site.accounts import selectors as accounts
from mira_site.errors import Conflict, NotFound
from mira_site.webhooks.models import Delivery
from tests.conversations.talking import answer, heard, know, put_to_rest, reply, say, tell
from tests.fake_anthropic import FakeAnthropic

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "Zanzibarium"


def places_of(word: str) -> list[str]:
    """Every column of every table in which the word stands, by raw SQL and over all users."""
    found = []
    with isolation.all_users("a test of the veil"), connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.table_name, c.column_name FROM information_schema.columns AS c"
            " JOIN information_schema.tables AS t USING (table_schema, table_name)"
            " WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE'"
            " AND c.data_type IN ('text', 'character varying', 'json', 'jsonb', 'tsvector')"
        )
        for table, column in cursor.fetchall():
            cursor.execute(
                f'SELECT count(*) FROM "{table}" WHERE "{column}"::text ILIKE %s', [f"%{word}%"]
            )
            if cursor.fetchone()[0]:
                found.append(f"{table}.{column}")
    return found


def keys_with(word: str) -> list[str]:
    """Every key of Redis whose value holds the word."""
    client = stream.client()
    found = []
    for key in client.scan_iter():
        kind = client.type(key)
        value = {
            "stream": lambda key=key: client.xrange(key),
            "string": lambda key=key: client.get(key),
            "list": lambda key=key: client.lrange(key, 0, -1),
            "hash": lambda key=key: client.hgetall(key),
        }.get(kind, lambda: "")()
        if word.casefold() in str(value).casefold():
            found.append(str(key))
    return found


def deltas(user, word: str) -> bool:
    return word in json.dumps([event.payload for event in heard(user)], default=str)


class TestDrawing:
    def test_what_is_said_under_it_is_marked_and_what_was_before_is_not(self, me):
        before = say(me)
        services.draw_veil(user=me)
        under = say(me, f"My plan is {SECRET}.")
        assert not before.is_off_record
        assert under.is_off_record
        assert [one.is_off_record for one in under.messages.all()] == [True, True]
        assert under.segment_id == before.segment_id

    def test_drawing_twice_changes_nothing(self, me):
        services.draw_veil(user=me)
        services.draw_veil(user=me)
        assert Veil.objects.for_user(me).count() == 1

    def test_each_message_and_each_answer_puts_off_its_end(self, me):
        services.draw_veil(user=me)
        at = timezone.now() + timedelta(minutes=40)
        say(me, at=at)
        assert Veil.objects.for_user(me).get().lifts_at >= at + timedelta(minutes=60)

    def test_the_flag_of_a_message_draws_it(self, me):
        turn = services.accept_message(
            user=me, text=SECRET, client_id=uuid.uuid4(), off_record=True
        )
        assert turn.is_off_record
        assert veil.is_drawn(me)

    def test_every_page_hears_of_it(self, me):
        services.draw_veil(user=me)
        notice = heard(me)[-1].payload
        assert (notice["type"], notice["level"]) == ("notice", "veil")
        assert notice["veil"]["is_drawn"] is True
        services.lift_veil(user=me)
        notice = heard(me)[-1].payload
        assert notice["level"] == "resync"
        assert notice["veil"] == {"is_drawn": False, "drawn_at": None, "lifts_at": None}

    def test_the_chat_starts_from_it(self, me):
        assert selectors.chat_state(me)["veil"]["is_drawn"] is False
        services.draw_veil(user=me)
        assert selectors.chat_state(me)["veil"]["is_drawn"] is True


class TestWords:
    @pytest.mark.parametrize(
        "text",
        [
            "off the record",
            "Off the record: I am looking for another job.",
            "off  the\nrecord, please",
            "Unter uns: ich mag ihn nicht.",
            "Unter uns gesagt, das wird nichts.",
            "entre nous, c'est fini",
            "Entre nosotros: no.",
            "Tra noi … non mi piace.",
            "Off the record – no names.",
        ],
    )
    def test_a_phrase_at_the_start_with_a_mark_behind_it_draws_it(self, me, text):
        assert veil_words.wish(text) is True
        assert tell(me, text).is_off_record

    @pytest.mark.parametrize(
        "text",
        [
            "He told me that off the record, so keep it.",
            "“Off the record” is a nice film.",
            "Off the record shops are closing.",
            "Unter uns wohnt eine Familie mit Hund.",
            "Entre nous et toi il y a un monde.",
            "What does off the record mean?",
            "off-the-record talks",
            "Off the recorder.",
            "Was bleibt, bleibt unter uns.",
        ],
    )
    def test_inside_a_sentence_it_is_only_talked_about(self, me, text):
        assert veil_words.wish(text) is None
        assert not tell(me, text).is_off_record

    def test_back_on_the_record_lifts_it_and_stands_on_the_record_itself(self, me):
        say(me, f"Off the record: {SECRET}.")
        back = tell(me, "Back on the record: I live in Graz.")
        assert not back.is_off_record
        assert not veil.is_drawn(me)
        assert places_of(SECRET) == []
        said = Message.objects.for_user(me).get(role=Message.Role.USER)
        assert (said.text, said.is_off_record) == ("Back on the record: I live in Graz.", False)

    def test_its_words_weigh_more_than_the_switch(self, me):
        services.draw_veil(user=me)
        turn = services.accept_message(
            user=me, text="Back on the record.", client_id=uuid.uuid4(), off_record=True
        )
        assert not turn.is_off_record

    def test_without_a_veil_back_on_the_record_is_a_message_like_any_other(self, me):
        assert not tell(me, "Back on the record: I live in Graz.").is_off_record


class TestReading:
    def test_it_reads_memory_and_feeds_it_nothing(self, me, fake_anthropic: FakeAnthropic):
        known = know(me, "Alice's boat is called Ada.")
        counted = Memory.objects.for_user(me).values_list("importance", flat=True).get()
        services.draw_veil(user=me)
        fake_anthropic.on("reply").says("She is called Ada.")
        turn = say(me, f"Remember this: {SECRET} is the code. What is my boat called?")
        assert list(turn.surfaced.values_list("memory_id", flat=True)) == [known.pk]
        assert "Ada" in fake_anthropic.seen("reply")[-1].prompt
        assert MemoryAccess.objects.for_user(me).count() == 0
        assert list(Memory.objects.for_user(me)) == [known]
        known.refresh_from_db()
        assert known.importance == counted
        assert not SubcorticalRecord.objects.for_user(me).exists()
        assert not ComposedContext.objects.for_user(me).exists()
        assert accounts.use_days(me) == 0

    def test_without_a_model_it_keeps_nothing_either(self, me):
        services.draw_veil(user=me)
        turn = say(me, f"Please remember that my code is {SECRET}.")
        assert turn.status == Turn.Status.DONE
        assert not Memory.objects.for_user(me).exists()

    def test_tools_look_things_up_and_write_nothing(self, me, fake_anthropic: FakeAnthropic):
        know(me, "Alice's boat is called Ada.")
        services.draw_veil(user=me)
        fake_anthropic.on("reply").calls_tool(
            "memory_tool", {"operation": "search", "query": "boat"}
        ).calls_tool(
            "memory_tool", {"operation": "create_memory", "content": f"Alice's code is {SECRET}."}
        ).says("I cannot keep that.")
        calls = list(say(me, f"Save that my code is {SECRET}.").tool_calls.all())
        assert [call.is_error for call in calls] == [False, True]
        assert "Ada" in calls[0].result
        assert "off the record" in calls[1].result
        assert Memory.objects.for_user(me).count() == 1

    def test_the_prompt_says_so_as_long_as_it_is_so(self, me, fake_anthropic: FakeAnthropic):
        say(me, "Good morning.")
        services.draw_veil(user=me)
        say(me, f"I mean {SECRET}.")
        say(me, "And?")
        newest = fake_anthropic.seen("reply")[-1].prompt
        assert "<off_the_record>" in newest
        assert SECRET in newest
        assert "Good morning." in newest
        services.lift_veil(user=me)
        say(me, "What did we talk about?")
        newest = fake_anthropic.seen("reply")[-1].prompt
        assert "<off_the_record>" not in newest
        assert SECRET not in newest
        assert "Good morning." in newest

    def test_no_webhook_hears_of_it(self, me):
        know(me, "Alice's boat is called Ada.")
        with isolation.all_users("a test of the veil"):
            before = Delivery.objects.count()
        services.draw_veil(user=me)
        say(me, "What is my boat called?")
        services.lift_veil(user=me)
        with isolation.all_users("a test of the veil"):
            assert Delivery.objects.count() == before


class TestLifting:
    def test_nothing_of_the_words_is_left_in_any_table_nor_in_redis(
        self, me, fake_anthropic: FakeAnthropic
    ):
        say(me, "Good morning.")
        know(me, "Alice's boat is called Ada.")
        services.draw_veil(user=me)
        fake_anthropic.on("reply").calls_tool(
            "memory_tool", {"operation": "search", "query": SECRET}
        ).says(f"{SECRET} it is.")
        file = services.keep_file(
            user=me, name="plan.txt", content=f"The plan is {SECRET}.".encode()
        )
        turn = services.accept_message(
            user=me, text=f"{SECRET}, my boat?", client_id=uuid.uuid4(), file_ids=[file.pk]
        )
        answer(turn)
        assert {"conversations_messages.text", "conversations_tool_calls.input"} <= set(
            places_of(SECRET)
        )
        assert keys_with(SECRET)
        services.lift_veil(user=me)
        assert places_of(SECRET) == []
        assert keys_with(SECRET) == []
        for model in (SurfacedMemory, ToolCall, Turn, Message):
            assert not [row for row in model.objects.for_user(me) if row.pk == turn.pk]
        with isolation.all_users("a test of the veil"), connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM conversations_attachments")
            assert cursor.fetchone() == (0,)
        assert not Veil.objects.for_user(me).exists()

    def test_the_process_that_answered_does_not_keep_what_it_looked_for(self, me):
        services.draw_veil(user=me)
        turn = tell(me, f"Where is {SECRET}?")
        tasks.run_turn(str(me.pk), str(turn.pk))
        assert not [text for text in embeddings._lately if SECRET in text]
        assert embeddings.read_queries.cache_info().currsize == 0

    def test_pages_hear_which_messages_are_gone(self, me):
        services.draw_veil(user=me)
        turn = say(me)
        ids = {str(one.pk) for one in turn.messages.all()}
        services.lift_veil(user=me)
        (notice,) = heard(me)
        assert set(notice.payload["deleted"]) == ids
        assert notice.payload["deleted_turns"] == [str(turn.pk)]

    def test_a_segment_of_it_alone_leaves_no_trace(self, me):
        services.draw_veil(user=me)
        say(me)
        services.lift_veil(user=me)
        assert not Segment.objects.for_user(me).exists()

    def test_a_segment_with_more_in_it_ends_where_it_was_last_on_the_record(self, me):
        early = timezone.now() - timedelta(hours=2)
        kept = say(me, at=early)
        services.draw_veil(user=me)
        say(me)
        services.lift_veil(user=me)
        segment = Segment.objects.for_user(me).get()
        assert segment.last_message_at == kept.messages.get(role="assistant").created_at

    def test_it_lifts_by_itself_an_hour_after_the_last_message(self, me):
        services.draw_veil(user=me)
        say(me, SECRET)
        ends = Veil.objects.for_user(me).get().lifts_at
        with time_machine.travel(ends - timedelta(seconds=1), tick=False):
            tasks.lift_veils()
        assert veil.is_drawn(me)
        with time_machine.travel(ends, tick=False):
            tasks.lift_veils()
        assert not veil.is_drawn(me)
        assert places_of(SECRET) == []

    def test_a_collapse_lifts_it_first_and_reads_nothing_of_it(
        self, me, fake_anthropic: FakeAnthropic
    ):
        say(me, "I live in Graz.")
        services.draw_veil(user=me)
        say(me, f"My code is {SECRET}.")
        fake_anthropic.forget()
        done = put_to_rest(me)
        assert done.status == Segment.Status.COLLAPSED
        assert Extraction.objects.for_user(me).count() == 1
        assert places_of(SECRET) == []
        background = [one.prompt for one in fake_anthropic.seen("background")]
        assert background
        assert not any(SECRET in prompt for prompt in background)

    def test_a_veil_that_was_only_drawn_outlives_a_collapse(self, me):
        say(me, "I live in Graz.")
        services.draw_veil(user=me)
        put_to_rest(me)
        assert veil.is_drawn(me)
        assert tell(me, SECRET).is_off_record

    def test_wrapping_up_what_was_off_the_record_alone_finds_nothing(self, me):
        services.draw_veil(user=me)
        say(me, SECRET)
        with pytest.raises(Conflict, match="off the record"):
            services.collapse_now(user=me)
        assert places_of(SECRET) == []

    def test_a_waiting_turn_is_not_answered_any_more(self, me):
        services.draw_veil(user=me)
        turn = tell(me, SECRET)
        services.lift_veil(user=me)
        with pytest.raises(NotFound):
            selectors.turn(me, turn.pk)
        assert places_of(SECRET) == []

    def test_a_turn_that_is_being_answered_is_stopped_and_erased_when_it_ends(self, me):
        services.draw_veil(user=me)
        turn = tell(me, SECRET)
        Turn.objects.for_user(me).filter(pk=turn.pk).update(
            status=Turn.Status.RUNNING, heartbeat_at=timezone.now()
        )
        services.lift_veil(user=me)
        turn.refresh_from_db()
        assert turn.stop_requested_at is not None
        assert not veil.is_drawn(me)
        with pytest.raises(Conflict, match="being erased"):
            services.draw_veil(user=me)
        Turn.objects.for_user(me).filter(pk=turn.pk).update(status=Turn.Status.STOPPED)
        tasks.lift_veils()
        assert places_of(SECRET) == []
        assert not Veil.objects.for_user(me).exists()
        services.draw_veil(user=me)

    def test_what_a_crash_left_is_found_by_the_sweep(self, me):
        services.draw_veil(user=me)
        say(me, SECRET)
        # As after a crash between the two steps: the veil has lifted, nothing else was done.
        Veil.objects.for_user(me).update(lifted_at=timezone.now())
        assert places_of(SECRET)
        tasks.lift_veils()
        assert places_of(SECRET) == []
        assert keys_with(SECRET) == []
        assert not Veil.objects.for_user(me).exists()

    def test_without_redis_the_veil_keeps_its_row_until_the_events_are_gone(self, me, settings):
        services.draw_veil(user=me)
        say(me, SECRET)
        url = settings.REDIS_URL
        settings.REDIS_URL = "unix:///nowhere/redis.sock?db=0"
        services.lift_veil(user=me)
        settings.REDIS_URL = url
        assert places_of(SECRET) == []
        assert keys_with(SECRET)
        tasks.lift_veils()
        assert keys_with(SECRET) == []
        assert not Veil.objects.for_user(me).exists()

    def test_it_is_no_message_of_the_past_for_a_retry(self, me):
        services.draw_veil(user=me)
        turn = tell(me, SECRET)
        services.stop_turn(user=me, turn_id=turn.pk)
        services.lift_veil(user=me)
        with pytest.raises(NotFound):
            services.retry_turn(user=me, turn_id=turn.pk)

    def test_what_is_said_after_it_is_remembered_again(self, me):
        services.draw_veil(user=me)
        say(me, SECRET)
        services.lift_veil(user=me)
        turn = say(me, "I live in Graz.")
        assert reply(turn)
        put_to_rest(me)
        assert Memory.objects.for_user(me).filter(text__contains="Graz").exists()

    def test_nobody_elses_veil_is_touched(self, me, bob):
        services.draw_veil(user=me)
        with isolation.acting_as(bob.pk):
            services.lift_veil(user=bob)
            assert not veil.is_drawn(bob)
            assert collapse.due(at=timezone.now()) == []
        assert veil.is_drawn(me)


class TestApi:
    def test_draw_look_lift(self, api):
        assert api.get("/api/v1/veil/").json()["is_drawn"] is False
        drawn = api.post("/api/v1/veil/").json()
        assert drawn["is_drawn"] is True
        assert drawn["lifts_at"]
        assert api.get("/api/v1/veil/").json() == drawn
        assert api.delete("/api/v1/veil/").json()["is_drawn"] is False

    def test_it_is_of_the_one_who_draws_it(self, api, stranger):
        api.post("/api/v1/veil/")
        assert stranger.get("/api/v1/veil/").json()["is_drawn"] is False

    def test_messages_say_that_they_are_off_the_record(self, api, me):
        services.draw_veil(user=me)
        say(me)
        rows = api.get("/api/v1/messages/").json()["results"]
        assert [row["is_off_record"] for row in rows] == [True, True]
