"""The tool search_history: the thread word for word, bounded, paged, and only one's own."""

from __future__ import annotations

import uuid

import pytest
from django.utils import timezone

from conversations.models import Message
from conversations.tools.search_history import PAGE_MESSAGES, Arguments, search_history
from memory import selectors, services
from mira_site import isolation
from mira_site.errors import ToolError
from tests.conversations.talking import put_to_rest, say
from toolbox.types import ToolContext


@pytest.fixture
def call(me):
    def call(**arguments: object) -> str:
        context = ToolContext(
            user=me, turn_id=uuid.uuid4(), segment_id=uuid.uuid4(), now=timezone.now()
        )
        return search_history(context, Arguments(**arguments)).text

    return call


SUMMARY = {
    "trace": "I heard from Alice where her boat lies and what her cat is called.",
    "precis": "Alice told me about her boat and her cat.",
    "title": "Boat and cat",
    "complexity": 1,
}


@pytest.fixture
def talk(me, fake_anthropic):
    fake_anthropic.on("summary").answers(SUMMARY)
    fake_anthropic.on("extraction").answers(
        {"memories": [{"text": "Alice's cat, a pet animal, is named Minka.", "messages": [3]}]}
    )
    fake_anthropic.on("reply").says("Noted, with <i>care</i>.")
    turns = [say(me, text) for text in ("Merula lies at berth 14.", "The cat is called Minka.")]
    put_to_rest(me)
    return turns


def message(me, text: str) -> Message:
    return Message.objects.for_user(me).get(text=text)


def test_words_find_the_message_with_its_day_and_its_part(me, talk, call):
    text = call(query="berth")
    found = message(me, "Merula lies at berth 14.")
    assert f'id="msg_{found.short_id}" segment="seg_{found.segment_id.hex[:8]}"' in text
    assert 'by="person"' in text and "Merula lies at berth 14." in text
    assert "Minka" not in text.split("<message", 1)[1]


def test_what_a_memory_rests_on_is_found_by_meaning(me, talk, call):
    assert "The cat is called Minka." in call(query="name of the pet animal cat")


def test_dates_bound_it(talk, call):
    today = timezone.localdate()
    assert "berth 14" in call(query="berth", since=str(today), until=str(today))
    assert "berth 14" not in call(query="berth", until="2020-01-01")
    with pytest.raises(ToolError, match="since must be"):
        call(query="berth", since="last week")


def test_nothing_found_says_so(talk, call):
    assert "say so honestly" in call(query="xylophone tuning fork")


def test_a_part_is_opened_page_by_page(me, fake_anthropic, call):
    fake_anthropic.on("reply").says("Yes.")
    turns = [say(me, f"Line number {number}.") for number in range(12)]
    segment = f"seg_{turns[0].segment.short_id}"
    first = call(operation="open_segment", segment_id=segment)
    assert first.count("<message ") == PAGE_MESSAGES and "There is a page 2." in first
    second = call(operation="open_segment", segment_id=segment, page=2)
    assert "Line number 11." in second and second.count("<message ") == 4
    assert "no such page" in call(operation="open_segment", segment_id=segment, page=3)


def test_around_a_message_stand_its_neighbours(me, talk, call):
    found = message(me, "The cat is called Minka.")
    text = call(operation="around_message", message_id=f"msg_{found.short_id}")
    assert text.index("berth 14") < text.index("Minka")
    assert "&lt;i&gt;care" in text, "what was said is data"


@pytest.mark.parametrize("given", ["nonsense", "msg_1a2b3c4d", "seg_ffffffff"])
def test_a_wrong_id_says_what_an_id_looks_like_or_where_to_take_one(talk, call, given):
    with pytest.raises(ToolError, match=r"seg_1a2b3c4d|Take an id"):
        call(operation="open_segment", segment_id=given)


def test_an_id_that_several_begin_with_is_refused_and_the_whole_one_taken(me, talk, call):
    one = message(me, "Merula lies at berth 14.")
    twin = uuid.UUID(one.pk.hex[:8] + uuid.uuid4().hex[8:])
    Message.objects.for_user(me).filter(text="The cat is called Minka.").update(id=twin)
    with pytest.raises(ToolError, match="by segment_id instead"):
        call(operation="around_message", message_id=f"msg_{one.short_id}")
    assert "berth 14" in call(operation="around_message", message_id=str(one.pk))


def test_off_the_record_is_not_found(me, talk, call):
    Message.objects.for_user(me).update(is_off_record=True)
    assert "berth" not in call(query="berth").replace("say so", "")


def test_nobody_elses_thread(talk, bob, me):
    segment = talk[0].segment.short_id
    with isolation.acting_as(bob.pk):
        context = ToolContext(
            user=bob, turn_id=uuid.uuid4(), segment_id=uuid.uuid4(), now=timezone.now()
        )
        assert "Nothing of it" in search_history(context, Arguments(query="berth")).text
        with pytest.raises(ToolError):
            search_history(
                context, Arguments(operation="open_segment", segment_id=f"seg_{segment}")
            )


def test_an_operation_without_its_argument_is_refused():
    with pytest.raises(ValueError, match="open_segment needs segment_id"):
        Arguments(operation="open_segment")
    with pytest.raises(ValueError, match="search needs query"):
        Arguments()


def test_the_tool_is_offered_beside_the_others(me, talk, fake_anthropic):
    names = [tool["name"] for tool in fake_anthropic.seen("reply")[-1].json["tools"]]
    assert names == sorted(names) and {"memory_tool", "search_history"} <= set(names)


def test_a_forgotten_memory_takes_its_passage_with_it(me, fake_anthropic, call):
    fake_anthropic.on("reply").says("I see.")
    fake_anthropic.on("summary").answers(SUMMARY)
    fake_anthropic.on("extraction").answers(
        {"memories": [{"text": "Alice's locker code is 4711.", "messages": [1]}]}
    )
    say(me, "My locker code is 4711.")
    put_to_rest(me)
    for one in selectors.memories(me):
        services.forget(user=me, memory_id=one.pk)
    assert "4711" not in call(query="locker code")
