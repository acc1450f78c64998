"""A turn from the message to the stored answer, with and without a model."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import takewhile

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations import offline, services, sweep, turn
from conversations.models import Message, SurfacedMemory, Turn
from memory import services as memory
from memory.models import Memory
from mira_site import embeddings, isolation
from mira_site.errors import EmbeddingsUnavailable
from mira_site.llm.models import ModelCall
from tests import messages_api
from tests.conversations.talking import (
    answer,
    heard,
    know,
    names,
    put_to_rest,
    quiet,
    reply,
    said,
    say,
    tell,
)
from tests.fake_anthropic import FakeAnthropic


def newest(fake: FakeAnthropic) -> dict:
    """The last request for a reply, as it came."""
    return fake.seen("reply")[-1].json


def hud(fake: FakeAnthropic) -> str:
    blocks = messages_api.blocks(newest(fake)["messages"][-1])
    return next(block["text"] for block in blocks if block["text"].startswith("<hud>"))


class TestWithoutAModel:
    def test_it_says_so_and_quotes_what_was_recalled_with_date_and_link(self, me):
        told = quiet(me, "My sister Vera lives in Graz.").messages.get(role="user")
        put_to_rest(me)
        asked = say(me, "Where does my sister live?")
        text = reply(asked)
        assert text.startswith(offline.NOT_CONFIGURED)
        assert "My sister Vera lives in Graz." in text
        date = f"{told.created_at:%d %B %Y}".lstrip("0")
        assert f"[{date}](/?at={told.pk})" in text
        assert (asked.status, asked.model) == (Turn.Status.DONE, "offline")

    def test_with_nothing_recalled_it_says_that_too(self, me):
        text = reply(say(me, "Where does my sister live?"))
        assert text == f"{offline.NOT_CONFIGURED}\n\nNothing of what I remember fits this."

    def test_what_was_said_in_this_part_is_quoted_though_it_is_no_memory_yet(self, me):
        told = tell(me, "Hello! My boat is called Ada. Do boats sleep?")
        answer(told)
        text = reply(say(me, "What is my boat called?"))
        message = told.messages.get(role="user")
        assert "You told me earlier:\n\n> My boat is called Ada.\n\n" in text
        assert f"(/?at={message.pk})" in text
        assert "Nothing of what I remember" not in text

    def test_of_what_is_told_it_says_what_becomes_of_it_unless_it_is_off_the_record(self, me):
        assert reply(say(me, "I had a long day.")).endswith(offline.LATER)
        assert offline.LATER not in reply(say(me, "Off the record: I bought a gift."))

    def test_dates_are_the_persons_own(self, me):
        me.timezone = "Pacific/Auckland"
        me.save()
        say(me, "My sister Vera lives in Graz.", at=datetime(2026, 6, 1, 12, 30, tzinfo=UTC))
        put_to_rest(me)
        assert "[2 June 2026]" in reply(say(me, "Where does my sister live?"))

    def test_the_same_is_said_to_the_open_pages(self, me):
        kept = know(me, "Vera is allergic to nuts.")
        asked = say(me, "What is Vera allergic to?")
        context, *deltas, finished = heard(me)
        assert [item["id"] for item in context.payload["surfaced"]] == [str(kept.pk)]
        assert "".join(event.payload["text"] for event in deltas) == reply(asked)
        assert finished.type == "turn.finished"
        assert finished.payload["message"]["text"] == reply(asked)
        assert finished.payload["message"]["surfaced"] == context.payload["surfaced"]
        assert {event.turn_id for event in heard(me)} == {str(asked.pk)}


class TestReply:
    def test_what_was_streamed_is_what_is_stored(self, me, fake_anthropic):
        pieces = ["Hel", "lo, ", "Ali", "ce.\n\n", "  – 🙂"]
        fake_anthropic.on("reply").streams([*pieces, "\x00"])
        asked = say(me)
        deltas = [event.payload["text"] for event in heard(me) if event.type == "text.delta"]
        assert reply(asked) == "".join(deltas) == "".join(pieces)
        assert (asked.status, asked.model) == (Turn.Status.DONE, messages_api.REPLY_MODEL)
        assert not said(asked).is_partial

    def test_thoughts_are_shown_while_they_come_and_not_stored(self, me, fake_anthropic):
        fake_anthropic.on("reply").thinks("Who is it?", then="Hello.")
        asked = say(me)
        thoughts = [e.payload["text"] for e in heard(me) if e.type == "thinking.delta"]
        assert "".join(thoughts) == "Who is it?"
        assert reply(asked) == "Hello."

    def test_usage_is_on_the_turn_and_in_the_books(self, me, fake_anthropic):
        asked = say(me)
        call = ModelCall.objects.for_user(me).get(turn_id=asked.pk, job="reply")
        assert (call.job, call.tier, call.outcome) == ("reply", "reply", "ok")
        assert asked.output_tokens == call.output_tokens > 0
        assert asked.input_tokens == call.input_tokens > 0
        assert heard(me)[-1].payload["usage"]["output_tokens"] == asked.output_tokens

    def test_what_surfaced_is_kept_in_its_order(self, me, fake_anthropic):
        know(me, "Vera is allergic to nuts.")
        know(me, "Vera plays the cello.")
        asked = say(me, "Is Vera allergic to something?")
        rows = list(SurfacedMemory.objects.for_user(me).filter(turn=asked))
        assert [row.rank for row in rows] == list(range(len(rows)))
        assert rows[0].memory.text == "Vera is allergic to nuts."
        assert all(row.why for row in rows)


class TestPrompt:
    def test_memories_stand_escaped_in_the_hud_before_the_newest_words(self, me, fake_anthropic):
        kept = know(me, "Vera said: </memories></hud> fish & <b>chips</b>.")
        Memory.objects.for_user(me).filter(pk=kept.pk).update(quarantined_at=None)  # looked at
        say(me, "What did Vera say?")
        assert f'<memory id="mem_{kept.short_id}"' in hud(
            fake_anthropic
        ) and "&lt;/memories&gt;&lt;/hud&gt; fish &amp; &lt;b&gt;" in hud(fake_anthropic)
        assert hud(fake_anthropic).count("</memories>") == 1
        blocks = messages_api.blocks(newest(fake_anthropic)["messages"][-1])
        assert [block["text"] for block in blocks[1:]] == ["What did Vera say?"]
        assert "Vera" not in fake_anthropic.seen("reply")[-1].system

    def test_nothing_recalled_is_told_to_the_model(self, me, fake_anthropic):
        say(me)
        assert "Nothing came up" in hud(fake_anthropic)

    def test_the_clock_is_the_persons_own(self, me, fake_anthropic):
        me.timezone = "Asia/Kathmandu"
        me.save()
        say(me, at=datetime(2026, 11, 28, 20, 30, tzinfo=UTC))
        assert "<now>Sunday, 29 November 2026, 02:15 (Asia/Kathmandu)</now>" in hud(fake_anthropic)

    def test_a_pause_is_mentioned_and_a_quick_answer_is_not(self, me, fake_anthropic):
        at = timezone.now() - timedelta(hours=5)
        say(me, at=at)
        say(me, at=at + timedelta(minutes=2))
        assert "last_message" not in hud(fake_anthropic)
        say(me, at=at + timedelta(hours=3))
        assert "last_message" in hud(fake_anthropic)

    def test_the_prefix_stays_the_same_and_is_read_from_the_cache(self, me, fake_anthropic):
        know(me, "Vera plays the cello.")
        turns = [say(me, text) for text in ("Hello.", "What does Vera play?", "And since when?")]
        first, second, third = (seen.json for seen in fake_anthropic.seen("reply"))
        assert first["system"] == second["system"] == third["system"]
        assert all("cache_control" in part for part in third["system"])
        for earlier, later in ((first, second), (second, third)):
            history = later["messages"][: len(earlier["messages"]) - 1]
            assert _plain(history) == _plain(earlier["messages"][:-1])
        assert "cache_control" in messages_api.blocks(third["messages"][-2])[-1]
        assert "cache_control" not in messages_api.blocks(third["messages"][-1])[-1]
        assert turns[0].cache_read_tokens == 0 < turns[0].cache_write_tokens
        assert turns[2].cache_read_tokens > turns[1].cache_read_tokens > 0

    def test_the_history_is_what_was_said_and_no_hud_of_earlier_turns(self, me, fake_anthropic):
        fake_anthropic.on("reply").says("Hello, Alice.")
        say(me, "Hi.")
        say(me, "How are you?")
        history = newest(fake_anthropic)["messages"][:-1]
        told = [(message["role"], messages_api.text_of(message)) for message in history]
        assert told == [("user", "Hi."), ("assistant", "Hello, Alice.")]

    def test_the_last_segments_are_continued_by_their_traces_and_older_ones_by_precis(
        self, me, fake_anthropic
    ):
        at = timezone.now() - timedelta(days=10)
        for number in range(7):
            fake_anthropic.on("summary").answers(
                {
                    "trace": f"I heard about journey {number} and all its <stations>.",
                    "precis": f"In short it was about journey {number}.",
                    "title": f"Journey {number}",
                    "complexity": 1,
                },
                times=1,
            )
            say(me, f"Journey {number}.", at=at + timedelta(days=number))
            put_to_rest(me)
        say(me, "Where were we?")
        system = fake_anthropic.seen("reply")[-1].system
        assert "I heard about journey 6 and all its &lt;stations&gt;." in system
        told = [
            number for number in range(7) if f"In short it was about journey {number}" in system
        ]
        assert told == [0, 1, 2]
        whole = [number for number in range(7) if f"I heard about journey {number}" in system]
        assert whole == [3, 4, 5, 6]
        assert f"{at + timedelta(days=6):%d %B %Y}" in system
        assert len(newest(fake_anthropic)["messages"]) == 1

    def test_unanswered_messages_are_told_with_the_next_one(self, me, fake_anthropic):
        fake_anthropic.on("reply").fails(401, times=1)
        say(me, "My cat is called Momo.")
        assert say(me, "What is she called?").status == Turn.Status.DONE
        (only,) = newest(fake_anthropic)["messages"]
        assert "My cat is called Momo." in messages_api.text_of(only)
        assert say(me, "And how old?").status == Turn.Status.DONE


class TestTrouble:
    @pytest.mark.parametrize("status", [429, 500, 529])
    def test_a_provider_that_stays_away_is_stood_in_for_by_quotes(self, me, fake_anthropic, status):
        know(me, "Vera is allergic to nuts.")
        fake_anthropic.on("reply").fails(status, times=9)
        asked = say(me, "What is Vera allergic to?")
        assert (asked.status, asked.model) == (Turn.Status.DONE, "offline")
        assert reply(asked).startswith(offline.NOT_REACHABLE)
        assert "Vera is allergic to nuts." in reply(asked)
        assert len(fake_anthropic.seen("reply")) == 3

    def test_a_short_overload_is_not_noticed(self, me, fake_anthropic):
        fake_anthropic.on("reply").fails(529, times=2).says("Hello.")
        assert reply(say(me)) == "Hello."

    def test_a_bad_key_is_an_error_that_names_the_setting(self, me, fake_anthropic):
        fake_anthropic.on("reply").fails(401)
        asked = say(me)
        assert (asked.status, asked.error_code) == (Turn.Status.FAILED, "model_bad_key")
        assert "ANTHROPIC_API_KEY" in asked.error_detail
        last = heard(me)[-1]
        assert last.type == "turn.failed"
        assert last.payload["error"]["code"] == "model_bad_key"
        assert Message.objects.for_user(me).get().text == "Good morning."

    def test_an_answer_cut_off_is_kept_as_far_as_it_came_and_a_retry_replaces_it(
        self, me, fake_anthropic
    ):
        fake_anthropic.on("reply").cuts_off(after=2, text="one two three")
        broken = say(me)
        assert (broken.status, broken.error_code) == (Turn.Status.FAILED, "model_unavailable")
        assert (reply(broken), said(broken).is_partial) == ("one two ", True)
        services.retry_turn(user=me, turn_id=broken.pk)
        fake_anthropic.on("reply").says("Here I am.")
        mended = answer(broken)
        assert (mended.status, reply(mended)) == (Turn.Status.DONE, "Here I am.")
        assert Message.objects.for_user(me).count() == 2
        assert "one two" not in messages_api.text_of(newest(fake_anthropic)["messages"][-1])

    @pytest.mark.parametrize("text", ["", "\n\n", "   "])
    def test_an_answer_of_nothing_is_a_failure(self, me, fake_anthropic, text):
        fake_anthropic.on("reply").streams([text] if text else [])
        asked = say(me)
        assert (asked.status, asked.error_code) == (Turn.Status.FAILED, "empty_reply")
        assert not asked.messages.filter(role=Message.Role.ASSISTANT).exists()

    def test_it_goes_on_without_recall(self, me, fake_anthropic, monkeypatch):
        know(me, "Vera is allergic to nuts.")

        def away(folder: object) -> embeddings.Encoder:
            raise EmbeddingsUnavailable("The embedding model could not be loaded.")

        embeddings.forget_queries()
        monkeypatch.setattr(embeddings, "_loaded", [])
        monkeypatch.setattr(embeddings, "_load", away)
        asked = say(me, "Something quite different?")
        assert asked.status == Turn.Status.DONE

    def test_it_goes_on_without_redis(self, me, fake_anthropic, redis_away):
        fake_anthropic.on("reply").says("Hello.")
        assert reply(say(me)) == "Hello."

    def test_a_bug_is_told_without_its_secrets(self, me, fake_anthropic, monkeypatch):
        def breaks(*args: object, **kwargs: object) -> None:
            raise ZeroDivisionError("secret")

        monkeypatch.setattr(turn.prompt, "compose", breaks)
        asked = say(me)
        assert (asked.status, asked.error_code) == (Turn.Status.FAILED, "internal")
        assert "secret" not in asked.error_detail

    def test_a_memory_forgotten_meanwhile_does_not_break_the_turn(self, me, monkeypatch):
        kept = know(me, "Vera is allergic to nuts.")
        surface = turn.surfacing.surface

        def then_forget(*args: object, **kwargs: object) -> list:
            found = surface(*args, **kwargs)
            memory.forget(user=me, memory_id=kept.pk)
            return found

        monkeypatch.setattr(turn.surfacing, "surface", then_forget)
        asked = say(me, "What is Vera allergic to?")
        connection.check_constraints()
        assert asked.status == Turn.Status.DONE
        assert not SurfacedMemory.objects.for_user(me).exists()


class TestOwnership:
    def test_a_turn_runs_once_however_often_it_is_queued(self, me):
        asked = say(me)
        before = names(me)
        answer(asked)
        assert names(me) == before
        assert Message.objects.for_user(me).count() == 2

    def test_the_late_answer_of_a_turn_that_was_given_up_is_dropped(self, me, fake_anthropic):
        asked = tell(me)
        claimed = turn.threads.claim_turn(me, asked.pk, at=timezone.now() - timedelta(minutes=5))
        sweep.interrupt_lost(at=timezone.now())
        draft = turn.Draft(text="Too late.")
        assert list(turn._stored(claimed, draft, Turn.Status.DONE)) == []
        asked.refresh_from_db()
        assert asked.status == Turn.Status.INTERRUPTED
        assert Message.objects.for_user(me).count() == 1

    def test_the_late_answer_of_an_earlier_attempt_is_dropped(self, me):
        asked = tell(me)
        claimed = turn.threads.claim_turn(me, asked.pk, at=timezone.now() - timedelta(minutes=5))
        sweep.interrupt_lost(at=timezone.now())
        services.retry_turn(user=me, turn_id=asked.pk)
        turn.threads.claim_turn(me, asked.pk, at=timezone.now())
        assert list(turn._stored(claimed, turn.Draft(text="Old."), Turn.Status.DONE)) == []
        assert list(turn._failed(claimed, turn.Draft(), "internal", "Old.")) == []
        asked.refresh_from_db()
        assert (asked.status, asked.attempt) == (Turn.Status.RUNNING, 2)
        assert Message.objects.for_user(me).count() == 1


@pytest.mark.django_db(transaction=True)
class TestStop:
    """The wish to stop is read on a connection of its own, so these commit."""

    @pytest.fixture
    def run(self, alice, monkeypatch) -> Callable[[], tuple[Turn, threading.Thread]]:
        monkeypatch.setattr(services, "queue_turn", lambda queued: None)

        def start() -> tuple[Turn, threading.Thread]:
            with isolation.acting_as(alice.pk):
                asked = services.accept_message(user=alice, text="Count.", client_id=uuid.uuid4())

            def work() -> None:
                with isolation.acting_as(alice.pk):
                    turn.run(user_id=alice.pk, turn_id=asked.pk)
                connection.close()

            worker = threading.Thread(target=work)
            worker.start()
            return asked, worker

        return start

    def test_what_was_said_until_then_is_kept(self, alice, fake_anthropic, run):
        fake_anthropic.on("reply").streams(["one ", "two ", *["more "] * 100], delay_s=0.1)
        asked, worker = run()
        _until(lambda: "text.delta" in names(alice))
        with isolation.acting_as(alice.pk):
            services.stop_turn(user=alice, turn_id=asked.pk)
        worker.join(timeout=5)
        assert not worker.is_alive()
        with isolation.acting_as(alice.pk):
            asked.refresh_from_db()
            assert asked.status == Turn.Status.STOPPED
            assert said(asked).is_partial
            assert said(asked).text.startswith("one ")
            assert names(alice)[-1] == "turn.stopped"
            assert heard(alice)[-1].payload["message"]["text"] == said(asked).text
            call = ModelCall.objects.for_user(alice).get(job="reply")
            assert call.outcome == "stopped"

    def test_before_the_first_word_nothing_is_kept(self, alice, fake_anthropic, run):
        fake_anthropic.on("reply").hangs()
        asked, worker = run()
        _until(lambda: fake_anthropic.requests)
        with isolation.acting_as(alice.pk):
            services.stop_turn(user=alice, turn_id=asked.pk)
        worker.join(timeout=5)
        with isolation.acting_as(alice.pk):
            asked.refresh_from_db()
            assert asked.status == Turn.Status.STOPPED
            assert Message.objects.for_user(alice).count() == 1

    def test_a_waiting_turn_beats(self, alice, fake_anthropic, run, monkeypatch):
        monkeypatch.setattr("conversations.liveness.HEARTBEAT_S", 0.2)
        monkeypatch.setattr("conversations.liveness.STOP_POLL_S", 0.1)
        fake_anthropic.on("reply").hangs()
        asked, worker = run()
        _until(lambda: fake_anthropic.requests)

        def beats() -> bool:
            with isolation.acting_as(alice.pk):
                asked.refresh_from_db()
                return asked.heartbeat_at > asked.started_at

        _until(beats)
        with isolation.acting_as(alice.pk):
            services.stop_turn(user=alice, turn_id=asked.pk)
        worker.join(timeout=5)
        assert not worker.is_alive()


def _until(holds: Callable[[], object], timeout_s: float = 10) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _plain(messages: list[dict]) -> list[tuple[str, str]]:
    return [(message["role"], messages_api.text_of(message)) for message in messages]


def test_an_ordinary_turn_takes_few_statements(me, fake_anthropic):
    """Each costs a millisecond before the first word, so what was read is passed along."""
    know(me, "Alice's boat Merula leaks.")
    say(me, "Where does my boat leak?")
    with CaptureQueriesContext(connection) as accepting:
        asked = tell(me, "How bad is the leak of my boat?")
    with CaptureQueriesContext(connection) as answering:
        answer(asked)
    sent = [str(query["sql"]) for query in answering.captured_queries]
    before_the_request = list(takewhile(lambda sql: "llm_model_calls" not in sql, sent))
    assert asked.surfaced.exists()
    assert len(accepting) <= 13, "\n".join(
        str(query["sql"]) for query in accepting.captured_queries
    )
    assert len(before_the_request) <= 20, "\n".join(before_the_request)
