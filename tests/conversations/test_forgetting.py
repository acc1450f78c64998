"""What the conversation holds of a memory goes with it; messages go with what came of them."""

from __future__ import annotations

import json
import threading
import time
import uuid
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from conversations import collapse, services, staleness
from conversations.models import ForgottenPassage, Message, Segment, SurfacedMemory, ToolCall, Turn
from conversations.selectors import summaries
from memory import extraction, settling
from memory import selectors as memories
from memory import services as memory
from memory.models import ForgetReceipt, Memory, MemorySource
from mira_site import isolation
from mira_site.errors import BadRequest, Conflict, MiraError, NotFound
from tests.conversations.talking import (
    answer,
    heard,
    know,
    names,
    put_to_rest,
    said,
    say,
    tell,
)

TALK = ("My boat is called Merula.", "I drink green tea every morning.")


def segment_of(user, *texts: str) -> Segment:
    """A segment with these messages, at rest."""
    for text in texts or TALK:
        say(user, text)
    return put_to_rest(user)


def about(user, word: str) -> Memory:
    return Memory.objects.for_user(user).get(text__icontains=word, archived_at=None)


def run_due(user) -> None:
    for segment in Segment.objects.for_user(user).filter(status=Segment.Status.COLLAPSING):
        collapse.run(user=user, segment_id=segment.pk)


def told(user) -> str:
    """Titles and summaries of all segments."""
    rows = Segment.objects.for_user(user).values_list("title", "precis", "trace")
    return "\n".join("\n".join(row) for row in rows)


def asked(turn: Turn) -> Message:
    return turn.messages.get(role=Message.Role.USER)


# --- summaries -----------------------------------------------------------------------------------
def test_a_summary_that_tells_it_is_gone_at_once_and_is_not_in_prompts(me):
    segment = segment_of(me)
    assert "Merula" in told(me)
    receipt = memory.forget(user=me, memory_id=about(me, "Merula").pk)
    assert "Merula" not in told(me)
    assert summaries(me, before=timezone.now() + timedelta(days=1)) == ()
    segment.refresh_from_db()
    assert (segment.embedding, segment.status) == (None, Segment.Status.COLLAPSING)
    assert receipt.counts["summaries"] == 1
    assert receipt.finished_at is None


def test_it_is_written_anew_without_it_from_the_messages_that_stay(me):
    segment = segment_of(me)
    collapsed_at = segment.collapsed_at
    memory.forget(user=me, memory_id=about(me, "Merula").pk)
    run_due(me)
    segment.refresh_from_db()
    assert segment.status == Segment.Status.COLLAPSED
    assert "green tea" in segment.trace
    assert "Merula" not in told(me)
    assert segment.collapsed_at == collapsed_at
    assert "Merula" in asked(segment.turns.earliest("created_at")).text
    receipt = ForgetReceipt.objects.for_user(me).get()
    assert receipt.finished_at is not None


def test_the_model_that_writes_it_anew_is_not_told(me, fake_anthropic):
    fake_anthropic.on("reply").says("Merula, what a name!", times=None)
    segment_of(me)
    memory.create(user=me, text="Alice's boat is called Merula.")
    source = MemorySource(
        user=me,
        memory=about(me, "Merula"),
        message_id=asked(Turn.objects.for_user(me).earliest("created_at")).pk,
        sentence="My boat is called Merula.",
        said_at=timezone.now(),
    )
    source.save()
    memory.forget(user=me, memory_id=source.memory_id)
    fake_anthropic.forget()
    run_due(me)
    (request,) = fake_anthropic.seen("summary")
    assert "green tea" in request.prompt
    assert "Merula" not in request.prompt


def test_a_summary_elsewhere_that_quotes_it_is_found_by_its_words(me):
    segment_of(me)
    other = segment_of(me, "Today I painted Merula white.", "Then it rained.")
    memory.forget(user=me, memory_id=about(me, "painted").pk)
    run_due(me)
    other.refresh_from_db()
    assert "rained" in other.trace
    memory.forget(user=me, memory_id=about(me, "called Merula").pk)
    run_due(me)
    assert "Merula" not in told(me)


def test_a_segment_of_which_all_was_forgotten_has_an_empty_summary(me):
    segment = segment_of(me, "My boat is called Merula.")
    memory.forget(user=me, memory_id=about(me, "Merula").pk)
    Message.objects.for_user(me).filter(role=Message.Role.ASSISTANT).delete()
    run_due(me)
    segment.refresh_from_db()
    assert segment.status == Segment.Status.COLLAPSED
    assert "nothing was said that I could keep" in segment.trace


def test_a_worker_that_read_it_before_the_wish_writes_nothing(me, monkeypatch):
    segment = segment_of(me)
    kept = about(me, "Merula")
    tea = about(me, "tea")
    memory.forget(user=me, memory_id=tea.pk)
    whole = collapse.summarising.summarise

    def slow(*args):
        summary = whole(*args)
        memory.forget(user=me, memory_id=kept.pk)
        return summary

    monkeypatch.setattr(collapse.summarising, "summarise", slow)
    with pytest.raises(Conflict):
        collapse.run(user=me, segment_id=segment.pk)
    assert "Merula" not in told(me)
    monkeypatch.undo()
    run_due(me)
    segment.refresh_from_db()
    assert segment.status == Segment.Status.COLLAPSED
    assert "Merula" not in told(me)
    assert not ForgetReceipt.objects.for_user(me).filter(finished_at=None).exists()


def test_rewriting_that_fails_stays_due(me, monkeypatch):
    segment = segment_of(me)
    memory.forget(user=me, memory_id=about(me, "Merula").pk)

    def broken(*args):
        raise Conflict("Not now.")

    monkeypatch.setattr(collapse.summarising, "summarise", broken)
    with pytest.raises(Conflict):
        collapse.run(user=me, segment_id=segment.pk)
    segment.refresh_from_db()
    assert segment.next_attempt_at is not None
    assert "Merula" not in told(me)
    monkeypatch.undo()
    run_due(me)
    assert ForgetReceipt.objects.for_user(me).get().finished_at is not None


def test_what_was_forgotten_is_not_extracted_again_from_a_segment_that_still_runs(me):
    segment_of(me)
    say(me, "As I said, my boat is called Merula.")
    say(me, "I was born in Graz.")
    memory.forget(user=me, memory_id=about(me, "Merula").pk)
    segment = put_to_rest(me)
    assert "Merula" not in told(me)
    assert {one.text for one in memories.made_of_segment(me, segment.pk)} == {
        "alice said: “I was born in Graz.”"
    }


# --- turns, events --------------------------------------------------------------------------------
def test_where_it_surfaced_goes_and_is_counted(me):
    kept = know(me, "Alice's boat is called Merula.")
    say(me, "What is my boat called?")
    assert SurfacedMemory.objects.for_user(me).count() == 1
    receipt = memory.forget(user=me, memory_id=kept.pk)
    assert receipt.counts["surfaced"] == 1
    assert not SurfacedMemory.objects.for_user(me).exists()


def test_why_other_memories_came_up_no_longer_quotes_it(me):
    kept = know(me, "Alice's boat is called Merula.")
    know(me, "Alice's boat lies in the old harbour.")
    say(me, "Is the boat called Merula in the harbour?")
    assert SurfacedMemory.objects.for_user(me).count() == 2
    memory.forget(user=me, memory_id=kept.pk)
    (row,) = SurfacedMemory.objects.for_user(me)
    assert "Merula" not in f"{row.why}{row.parts}"
    assert row.parts["path"]


def test_why_memories_came_up_no_longer_quotes_a_deleted_message(me):
    know(me, "Alice's boat lies in the old harbour.")
    first = say(me, "Is my boat Merula in the harbour?")
    say(me, "And is the harbour full?")
    before = [f"{row.why}{row.parts}" for row in SurfacedMemory.objects.for_user(me)]
    assert "Merula" in "".join(before)
    delete(me, asked(first), None)
    after = [f"{row.why}{row.parts}" for row in SurfacedMemory.objects.for_user(me)]
    assert after
    assert "Merula" not in "".join(after)


def test_what_a_tool_answered_about_it_is_emptied(me):
    kept = know(me, "Alice's boat is called Merula.")
    turn = say(me, "Good morning.")
    for position, result in enumerate(("The boat is called Merula.", "It is sunny.")):
        ToolCall.objects.create(
            user=me, turn=turn, position=position, name="memory_tool", input={"query": "x"},
            result=result, is_error=False, summary="Looked", called_at=timezone.now(),
        )  # fmt: skip
    receipt = memory.forget(user=me, memory_id=kept.pk)
    assert receipt.counts["tool_calls"] == 1
    results = [call.result for call in turn.tool_calls.order_by("position")]
    assert "Merula" not in results[0]
    assert results[1] == "It is sunny."


def test_kept_events_are_dropped_and_open_pages_told(me, django_capture_on_commit_callbacks):
    kept = know(me, "Alice's boat is called Merula.")
    say(me, "What is my boat called?")
    assert "Merula" in json.dumps([dict(event.payload) for event in heard(me)])
    with django_capture_on_commit_callbacks(execute=True):
        memory.forget(user=me, memory_id=kept.pk)
    assert names(me) == ["notice"]
    assert heard(me)[0].payload["level"] == "resync"


def test_without_redis_it_is_forgotten_all_the_same(
    me, redis_away, django_capture_on_commit_callbacks
):
    kept = know(me, "Alice's boat is called Merula.")
    with django_capture_on_commit_callbacks(execute=True):
        memory.forget(user=me, memory_id=kept.pk)
    assert not Memory.objects.for_user(me).exists()


# --- deleting messages ----------------------------------------------------------------------------
def delete(user, message, choice="forget", *, with_answer=True):
    return services.delete_message(
        user=user, message_id=message.pk, what_came_of_it=choice, with_answer=with_answer
    )


def test_deleting_a_message_forgets_what_rests_on_it_alone(me):
    segment = segment_of(me)
    boat = asked(segment.turns.earliest("created_at"))
    gone = delete(me, boat)
    assert (len(gone.message_ids), gone.forgotten, gone.kept) == (2, 1, 0)
    assert gone.receipt is not None
    run_due(me)
    assert "Merula" not in told(me)
    assert not Memory.objects.for_user(me).filter(text__contains="Merula").exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT string_agg(to_jsonb(m)::text, '') FROM conversations_messages m")
        assert "Merula" not in cursor.fetchone()[0]


def test_a_memory_with_other_sources_only_loses_this_one(me):
    segment_of(me)
    segment = segment_of(me, "My boat is called Merula.")
    again = asked(segment.turns.get())
    gone = delete(me, again, None)
    assert (gone.forgotten, gone.kept) == (0, 1)
    assert about(me, "Merula").sources.count() == 1


def spans(user) -> str:
    """What memories quote around their sentences, by raw SQL."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(string_agg(span, E'\\n'), '') FROM memory_sources")
        return str(cursor.fetchone()[0])


def test_a_deleted_message_is_quoted_by_no_memory(me):
    segment = segment_of(me, "My boat is called Merula. I was born in Graz.", "I drink tea.")
    assert "Graz" in spans(me)
    delete(me, asked(segment.turns.earliest("created_at")), "keep")
    assert spans(me) == "I drink tea."


@pytest.mark.parametrize("choice", ["derive", "forget", "keep"])
def test_an_edited_message_is_quoted_as_it_reads_now(me, choice):
    segment = segment_of(me, "My boat is called Merula. I was born in Graz.")
    edit(me, asked(segment.turns.get()), "Well, I was born in Graz.", choice)
    assert "Merula" not in spans(me)
    run_due(me)
    assert "Merula" not in spans(me)


def test_what_was_forgotten_is_not_quoted_again_after_an_edit(me):
    segment = segment_of(me, "My boat is called Merula. I was born in Graz.")
    memory.forget(user=me, memory_id=about(me, "Merula").pk)
    run_due(me)
    assert "Merula" not in spans(me)
    edited = "Well. My boat is called Merula. I was born in Graz."
    edit(me, asked(segment.turns.get()), edited, "keep")
    assert "born in Graz" in spans(me)
    assert "Merula" not in spans(me)


def test_what_came_of_it_has_to_be_said_where_memories_rest_on_it_alone(me):
    segment = segment_of(me)
    boat = asked(segment.turns.earliest("created_at"))
    with pytest.raises(Conflict):
        delete(me, boat, None)
    assert Message.objects.for_user(me).filter(pk=boat.pk).exists()


def test_kept_memories_stay_without_the_words_of_the_message(me):
    segment = segment_of(me)
    delete(me, asked(segment.turns.earliest("created_at")), "keep")
    kept = about(me, "Merula")
    assert kept.sources.count() == 0
    run_due(me)
    assert "Merula" not in told(me)


def test_the_answer_stays_if_wished_and_cannot_be_asked_for_again(me):
    turn = say(me, "Good morning.")
    delete(me, asked(turn), with_answer=False)
    assert said(turn).text
    Turn.objects.for_user(me).update(status=Turn.Status.STOPPED)
    with pytest.raises(Conflict):
        services.retry_turn(user=me, turn_id=turn.pk)


def test_an_answer_alone_can_be_deleted(me):
    turn = say(me, "Good morning.")
    delete(me, said(turn), None)
    assert [message.role for message in turn.messages.all()] == ["user"]


def test_what_tools_did_for_a_deleted_answer_goes_with_it(me):
    turn = say(me, "Good morning.")
    ToolCall.objects.create(
        user=me, turn=turn, position=0, name="search_history", input={"query": "Merula"},
        result="The boat is called Merula.", is_error=False, summary="", called_at=timezone.now(),
    )  # fmt: skip
    delete(me, said(turn), None)
    assert not ToolCall.objects.for_user(me).exists()


@pytest.mark.parametrize("change", ["delete", "edit"])
def test_what_was_read_before_a_change_is_not_remembered(me, monkeypatch, change):
    turn = say(me, "My boat is called Merula.")
    say(me, "I drink green tea every morning.")
    whole = extraction.extract

    def slow(*args, **kwargs):
        found = whole(*args, **kwargs)
        if change == "delete":
            delete(me, asked(turn), None)
        else:
            edit(me, asked(turn), "My boat is called Parus.", None)
        return found

    monkeypatch.setattr(extraction, "extract", slow)
    with pytest.raises(MiraError):
        put_to_rest(me)
    monkeypatch.undo()
    run_due(me)
    assert not Memory.objects.for_user(me).filter(text__icontains="Merula").exists()
    assert about(me, "tea")
    assert Memory.objects.for_user(me).filter(text__icontains="Parus").exists() == (
        change == "edit"
    )


@pytest.mark.django_db(transaction=True)
def test_what_is_being_stored_of_a_message_goes_with_it(me, monkeypatch):
    turn = say(me, "My boat is called Merula.")
    whole, gone = settling.settle, []

    def settled(*args, **kwargs):
        ids = whole(*args, **kwargs)

        def work() -> None:
            try:
                with isolation.acting_as(me.pk):
                    gone.append(delete(me, asked(turn), "forget"))
            finally:
                connection.close()

        deleting = threading.Thread(target=work)
        deleting.start()
        deleting.join(timeout=1)  # it waits for what is being stored here
        return ids

    monkeypatch.setattr(settling, "settle", settled)
    with suppress(MiraError):
        put_to_rest(me)
    deadline = time.monotonic() + 10
    while not gone and time.monotonic() < deadline:
        time.sleep(0.02)
    assert gone and gone[0].forgotten == 1
    assert not Memory.objects.for_user(me).exists()


def test_the_last_message_of_a_segment_takes_the_segment_along(me):
    segment = segment_of(me, "My boat is called Merula.")
    delete(me, asked(segment.turns.get()))
    assert not Segment.objects.for_user(me).exists()
    assert not Turn.objects.for_user(me).exists()
    assert say(me, "Good morning.").status == Turn.Status.DONE


def test_nothing_is_deleted_or_edited_while_mira_answers(me):
    first = say(me, "Good morning.")
    running = tell(me, "And now?")
    with pytest.raises(Conflict):
        delete(me, asked(first))
    with pytest.raises(Conflict):
        services.edit_message(
            user=me, message_id=asked(first).pk, text="Good evening.", what_came_of_it=None
        )
    answer(running)
    delete(me, asked(first))


# --- editing messages -----------------------------------------------------------------------------
def edit(user, message, text, choice=None):
    return services.edit_message(
        user=user, message_id=message.pk, text=text, what_came_of_it=choice
    )


def test_an_edited_message_is_read_again_and_its_summary_written_anew(me):
    segment = segment_of(me)
    boat = asked(segment.turns.earliest("created_at"))
    changed = edit(me, boat, "My boat is called Alauda.", "derive")
    assert changed.edited_at is not None
    assert "Merula" not in told(me)
    run_due(me)
    assert "Alauda" in told(me)
    assert about(me, "Alauda").sources.get().message_id == boat.pk
    old = Memory.objects.for_user(me).get(text__contains="Merula")
    assert old.archive_reason == "message edited"
    assert about(me, "tea").sources.count() == 1
    assert not Message.objects.for_user(me).filter(reread_due_at__isnull=False).exists()


def test_an_edit_can_forget_what_it_takes_back(me):
    segment = segment_of(me)
    boat = asked(segment.turns.earliest("created_at"))
    edit(me, boat, "I have a boat with a name of her own.", "forget")
    run_due(me)
    assert not Memory.objects.for_user(me).filter(text__contains="Merula").exists()
    assert "Merula" not in told(me)


def test_an_edit_can_keep_what_came_of_it(me):
    segment = segment_of(me)
    boat = asked(segment.turns.earliest("created_at"))
    edit(me, boat, "My boat has a name.", "keep")
    run_due(me)
    assert about(me, "Merula").archived_at is None
    assert Memory.objects.for_user(me).count() == 2


def test_what_was_forgotten_of_a_message_stays_so_when_it_is_edited(me):
    segment = segment_of(me, "My boat is called Merula. I was born in Graz.")
    memory.forget(user=me, memory_id=about(me, "Merula").pk)
    run_due(me)
    message = asked(segment.turns.get())
    edit(me, message, "Well. My boat is called Merula. I was born in Linz.", "derive")
    run_due(me)
    assert "Merula" not in told(me)
    assert [one.text for one in Memory.objects.for_user(me).live()] == [
        "alice said: “I was born in Linz.”"
    ]


def test_the_same_text_changes_nothing(me):
    turn = say(me, "Good morning.")
    assert edit(me, asked(turn), " Good morning. ").edited_at is None


def test_what_mira_said_cannot_be_edited(me):
    with pytest.raises(BadRequest):
        edit(me, said(say(me, "Good morning.")), "I never said that.")


# --- over HTTP, two people ------------------------------------------------------------------------
def test_the_api_says_what_came_of_a_message_and_offers_the_choice(me, api):
    boat = asked(segment_of(me).turns.earliest("created_at"))
    address = f"/api/v1/messages/{boat.pk}/"
    came = api.get(f"{address}what-came-of-it/").json()
    assert [one["text"] for one in came["memories"]] == ["alice said: “My boat is called Merula.”"]
    assert came["answer"]["id"] == str(said(boat.turn).pk)
    assert api.delete(address).status_code == 409
    gone = api.delete(f"{address}?what_came_of_it=forget").json()
    assert gone["forgotten"] == 1
    assert gone["receipt"]["counts"]["memories"] == 1
    assert api.delete(f"{address}?what_came_of_it=forget").status_code == 404


def test_the_api_edits_a_message(me, api):
    boat = asked(segment_of(me).turns.earliest("created_at"))
    address = f"/api/v1/messages/{boat.pk}/"
    assert (
        api.patch(address, {"text": "My boat is called Alauda."}, format="json").status_code == 409
    )
    body = {"text": "My boat is called Alauda.", "what_came_of_it": "derive"}
    shown = api.patch(address, body, format="json").json()
    assert shown["text"] == "My boat is called Alauda."
    assert shown["edited_at"] is not None
    assert api.patch(address, {"text": " "}, format="json").status_code == 400


def test_bobs_messages_are_not_alices_to_touch(me, api, stranger):
    boat = asked(segment_of(me).turns.earliest("created_at"))
    address = f"/api/v1/messages/{boat.pk}/"
    assert stranger.get(f"{address}what-came-of-it/").status_code == 404
    assert stranger.delete(f"{address}?what_came_of_it=forget").status_code == 404
    assert stranger.patch(address, {"text": "Mine."}, format="json").status_code == 404
    boat.refresh_from_db()
    assert boat.text == "My boat is called Merula."


def test_what_alice_forgets_touches_nothing_of_bobs(alice, bob, acting):
    with acting(bob):
        segment_of(bob)
    with acting(alice):
        segment_of(alice)
        memory.forget(user=alice, memory_id=about(alice, "Merula").pk)
        with pytest.raises(NotFound):
            memory.forget(user=alice, memory_id=uuid.uuid4())
    with acting(bob):
        assert "Merula" in told(bob)
        assert about(bob, "Merula").archived_at is None
        assert not ForgottenPassage.objects.exists()
        staleness.written_anew(bob, at=timezone.now())
    with acting(alice):
        assert ForgetReceipt.objects.for_user(alice).get().finished_at is None
