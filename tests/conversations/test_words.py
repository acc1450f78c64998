"""The places of words: what is found by them, and that nothing stays of what is gone."""

from __future__ import annotations

import itertools
import random
import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.postgres.search import SearchQuery
from django.db import connection, transaction

from conversations import searching, tsquery, words
from conversations.models import Message, Segment, Thread, WordPlaces
from conversations.words import BLOCK
from mira_site import isolation
from mira_site.accounts.models import User
from tests.conversations.talking import at_once

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
RARE = 300  # the position of the message that alone says "xylophone"
SUBJECTS = ("boat", "sister", "garden", "piano")


def text_of(position: int) -> str:
    chance = random.Random(position)
    told = " ".join(chance.choices(SUBJECTS, k=2))
    return f"{told}, number {position}" + (", a xylophone" if position == RARE else "")


def said(user: User, first: int, last: int) -> None:
    """Messages of these positions, a minute apart, as a restored thread would come."""
    thread, _ = Thread.objects.get_or_create(user=user)
    segment, _ = Segment.objects.get_or_create(
        user=user, thread=thread, defaults={"opened_at": BEGUN, "last_message_at": BEGUN}
    )
    Message.objects.bulk_create(
        Message(
            user=user,
            thread=thread,
            segment=segment,
            position=position,
            role=Message.Role.USER if position % 2 else Message.Role.ASSISTANT,
            content=[{"type": "text", "text": text_of(position)}],
            text=text_of(position),
            created_at=BEGUN + timedelta(minutes=position),
        )
        for position in range(first, last + 1)
    )


@pytest.fixture
def long(me):
    """Two full blocks and a beginning of a third."""
    said(me, 1, 2 * BLOCK + 100)
    assert WordPlaces.objects.for_user(me).count() == 2 * 256
    return me


def kept(user: User, word: str) -> list[int]:
    """Where the word stands by the kept places alone, oldest first."""
    parts = words.positions(user, tsquery.Word(word), first=0, last=10 * BLOCK)
    return sorted(position for part in parts for position in part)


def found(user: User, query: str) -> list[int]:
    """Positions of what is shown for the query, the best first."""
    rows = searching.said(user, query, Message.objects.for_user(user), None, None)
    return [row.position for row in rows]


def at(user: User, position: int) -> Message:
    message: Message = Message.objects.for_user(user).get(position=position)
    return message


QUERIES = (
    "xylophone",
    "boat",
    "boat piano",
    '"boat sister"',
    "boat or xylophone",
    "boat -garden",
    "number -boat -garden -piano",
    "1024",
    "1023 or 2047 or 2048 or 2148",
    "-boat",
    '-"boat sister"',
    'piano -"boat sister" -garden',
    "nothing of it",
    "the",
)


def test_by_places_exactly_that_is_found_which_full_text_finds(long, monkeypatch):
    monkeypatch.setattr(searching, "SEARCH_CANDIDATES", 4 * BLOCK)
    for query, (first, last) in itertools.product(QUERIES, [(1, 9_999), (900, 1_100), (1, 200)]):
        since, until = BEGUN + timedelta(minutes=first), BEGUN + timedelta(minutes=last)
        rows = Message.objects.for_user(long).filter(
            search_vector=SearchQuery(query, config="english", search_type="websearch"),
            position__range=(first, last),
        )
        best = searching.ranked(long, query, since, until)
        expected = sorted(rows.values_list("position", flat=True))
        assert sorted(position for _, position, _ in best) == expected, query


def test_of_many_the_newest_are_ranked(long, monkeypatch):
    monkeypatch.setattr(searching, "SEARCH_CANDIDATES", 150)
    newest = range(2 * BLOCK + 100, 2 * BLOCK - 50, -1)
    assert [one[1] for one in searching.ranked(long, "number", None, None)] == [*newest]


def test_a_rare_word_reads_no_message_of_a_full_block_but_those_that_hold_it(
    long, django_assert_max_num_queries
):
    with django_assert_max_num_queries(6):
        assert found(long, "xylophone") == [RARE]


def test_a_deleted_message_leaves_none_of_its_words(long):
    at(long, RARE).delete()
    assert kept(long, "xylophon") == kept(long, str(RARE)) == []
    assert kept(long, str(RARE + 1)) == [RARE + 1], "the others stay"


def test_an_edited_message_is_found_by_its_new_words_alone(long):
    message = at(long, RARE)
    message.text = "A clarinet."
    message.save(update_fields=["text"])
    assert kept(long, "xylophon") == []
    assert kept(long, "clarinet") == [RARE]


def test_off_the_record_no_word_is_kept(long):
    Message.objects.for_user(long).filter(position=RARE).update(is_off_record=True)
    assert kept(long, "xylophon") == []
    Message.objects.for_user(long).filter(position=RARE).update(is_off_record=False)
    assert kept(long, "xylophon") == [RARE]


def test_what_was_off_the_record_when_its_block_became_full_is_not_kept(me):
    said(me, 1, BLOCK - 2)
    Message.objects.for_user(me).filter(position=RARE).update(is_off_record=True)
    said(me, BLOCK - 1, BLOCK)
    assert kept(me, "xylophon") == [] and kept(me, str(RARE + 1)) == [RARE + 1]


def test_a_change_that_is_none_of_words_keeps_the_rows(long):
    before = set(WordPlaces.objects.for_user(long).values_list("pk", flat=True))
    Message.objects.for_user(long).filter(position=RARE).update(edited_at=BEGUN)
    assert set(WordPlaces.objects.for_user(long).values_list("pk", flat=True)) == before


def test_a_block_becomes_full_with_an_answer(me):
    said(me, 1, BLOCK - 2)
    said(me, BLOCK - 1, BLOCK - 1)  # position 1,023, the last of its block, by the person
    assert words.asked(me, "boat").unkept_from == 0
    said(me, BLOCK, BLOCK)
    assert words.asked(me, "boat").unkept_from == BLOCK
    assert found(me, "1024") == [BLOCK]


def test_a_gap_that_is_filled_later_is_kept_too(me):
    said(me, 1, RARE - 1)
    said(me, RARE + 1, BLOCK)
    assert kept(me, "xylophon") == []
    said(me, RARE, RARE)
    assert kept(me, "xylophon") == [RARE]


@pytest.mark.django_db(transaction=True)
def test_a_message_that_is_being_changed_while_its_block_becomes_full_is_kept_as_it_became(me):
    said(me, 1, BLOCK - 2)
    is_changed, is_fuller = threading.Event(), threading.Event()

    def change() -> None:
        with transaction.atomic():
            Message.objects.for_user(me).filter(position=RARE).update(text="A clarinet.")
            is_changed.set()
            is_fuller.wait(timeout=0.5)  # which it cannot be before this is over

    def fill() -> None:
        is_changed.wait(timeout=10)
        said(me, BLOCK - 1, BLOCK)
        is_fuller.set()

    at_once(me, change, fill)
    assert kept(me, "xylophon") == [] and kept(me, "clarinet") == [RARE]


def test_nobody_sees_or_changes_the_words_of_somebody_else(long, bob):
    with isolation.acting_as(bob.pk):
        assert kept(long, "boat") == [], "by row-level security, whoever is named"
        said(bob, 1, 50)
        assert found(bob, "7") == [7] and found(bob, "xylophone") == []
        with connection.cursor() as cursor:
            cursor.execute("SELECT conversations_fill_words(%s, 0)", [bob.pk])
            cursor.execute("DELETE FROM conversations_word_places WHERE user_id = %s", [long.pk])
            assert cursor.rowcount == 0
    assert kept(long, "xylophon") == [RARE]


def test_an_account_goes_with_its_words(long):
    with isolation.all_users("a test"):
        User.objects.get(pk=long.pk).delete()
        assert not WordPlaces.objects.exists()
