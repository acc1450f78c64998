from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from django.db import connection

from memory import truth
from memory.models import Conflict, Memory, MemoryLink, MemorySource
from memory.visibility import visible
from mira_site import errors, isolation
from mira_site.errors import BadRequest, NotFound
from tests.factories import MemoryFactory

NOW = datetime(2026, 11, 28, 13, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")
CITIES = (("Graz", 90), ("Linz", 60), ("Vienna", 30))


@pytest.fixture
def fact(as_alice):
    """A memory of Alice's, said so many days ago."""

    def make(text, *, days_ago=0, **fields):
        said_at = NOW - timedelta(days=days_ago)
        memory = MemoryFactory(user=as_alice, text=text, created_at=said_at, **fields)
        MemorySource.objects.create(
            user=as_alice, memory=memory, message_id=uuid4(), sentence=text, said_at=said_at
        )
        return memory

    return make


@pytest.fixture
def chain(as_alice, fact):
    """Three homes, each replaced by the next."""
    homes = [fact(f"Alice lives in {city}.", days_ago=days) for city, days in CITIES]
    supersede(as_alice, homes[1], homes[0])
    supersede(as_alice, homes[2], homes[1])
    return homes


@pytest.fixture
def births(as_alice, fact):
    one = fact("Alice was born in 1990.", days_ago=5)
    return conflict(as_alice, one, fact("Alice was born in 1991.", days_ago=1))


def supersede(user, newer, older, at=NOW):
    truth.supersede(user, newer.id, older.id, at=at, reasoning="It says so itself.")


def conflict(user, older, newer):
    return truth.conflict(user, older.id, newer.id, reasoning="Both cannot be true.", at=NOW)


def seen(user, *, past=False):
    rows = Memory.objects.for_user(user).filter(visible(NOW + timedelta(days=1), past=past))
    return set(rows.values_list("text", flat=True))


def until(memory):
    memory.refresh_from_db()
    return memory.valid_until


# --- Replacement -----------------------------------------------------------------------------
def test_what_is_replaced_ends_when_the_new_was_said_and_stays_findable_as_past(as_alice, fact):
    graz, vienna = fact("Alice lives in Graz.", days_ago=9), fact("Alice lives in Vienna.")
    supersede(as_alice, vienna, graz)
    vienna.refresh_from_db()
    assert until(graz) == vienna.valid_from == NOW
    assert seen(as_alice) == {"Alice lives in Vienna."}
    assert seen(as_alice, past=True) == {"Alice lives in Vienna.", "Alice lives in Graz."}
    link = MemoryLink.objects.for_user(as_alice).get()
    assert (link.source_id, link.target_id, link.link_type) == (vienna.id, graz.id, "supersedes")


def test_a_fact_that_begins_later_leaves_the_old_one_true_till_then(as_alice, fact):
    graz, move = fact("Alice lives in Graz.", days_ago=9), NOW + timedelta(days=30)
    supersede(as_alice, fact("Alice moves to Vienna at New Year.", valid_from=move), graz)
    assert until(graz) == move
    assert "Alice lives in Graz." in seen(as_alice)


def test_nothing_ends_before_it_began(as_alice, fact):
    old = fact("Alice rents a room.", valid_from=NOW)
    supersede(as_alice, fact("Alice owns a flat.", valid_from=NOW - timedelta(days=9)), old)
    assert until(old) == NOW


def test_replacing_twice_changes_nothing(as_alice, fact):
    old, new = fact("Alice has a cat.", days_ago=3), fact("Alice has a dog.", days_ago=1)
    supersede(as_alice, new, old)
    before = until(old)
    supersede(as_alice, new, old, at=NOW + timedelta(days=5))
    assert until(old) == before
    assert MemoryLink.objects.for_user(as_alice).count() == 1


def test_a_chain_ends_each_link_where_the_next_began_and_is_no_ring(as_alice, chain):
    a, b, c = chain
    assert [until(a), until(b)] == [NOW - timedelta(days=60), NOW - timedelta(days=30)]
    for newer, older in ((a, c), (a, b), (b, c)):
        with pytest.raises(errors.Conflict):
            supersede(as_alice, newer, older)
    supersede(as_alice, c, a)  # said already, through b
    assert until(a) == NOW - timedelta(days=60)
    assert seen(as_alice) == {"Alice lives in Vienna."}


def test_what_was_replaced_is_true_again_when_its_replacement_is_taken_back(as_alice, fact):
    graz, vienna = fact("Alice lives in Graz.", days_ago=9), fact("Alice lives in Vienna.")
    supersede(as_alice, vienna, graz)
    assert truth.reopen_replaced_by(as_alice, vienna.id, at=NOW) == [graz.id]
    assert until(graz) is None
    assert truth.reopen_replaced_by(as_alice, vienna.id, at=NOW) == []


def test_taking_back_the_middle_of_a_chain_joins_its_ends(as_alice, chain):
    a, b, _ = chain
    truth.reopen_replaced_by(as_alice, b.id, at=NOW)
    b.delete()
    assert until(a) == NOW - timedelta(days=30)
    assert MemoryLink.objects.for_user(as_alice).get().target_id == a.id


def test_what_two_replaced_stays_past_while_one_of_them_stands(as_alice, fact):
    old = fact("Alice drinks coffee.", days_ago=9)
    one = fact("Alice no longer drinks coffee.", days_ago=5)
    supersede(as_alice, one, old)
    supersede(as_alice, fact("Alice drinks tea instead of coffee.", days_ago=2), old)
    truth.reopen_replaced_by(as_alice, one.id, at=NOW)
    assert until(old) == NOW - timedelta(days=2)


def test_an_end_that_was_earlier_stays_its_end(as_alice, fact):
    ended = NOW - timedelta(days=50)
    old = fact("Alice worked for Siemens.", days_ago=9, valid_until=ended)
    new = fact("Alice works for Bosch.")
    supersede(as_alice, new, old)
    assert until(old) == ended
    truth.reopen_replaced_by(as_alice, new.id, at=NOW)
    assert until(old) == ended


@pytest.mark.parametrize("act", [truth.supersede, truth.conflict])
def test_what_is_not_there_or_the_same_is_refused(as_alice, fact, act):
    memory, gone = fact("Alice sails."), fact("Alice rows.", archived_at=NOW)
    for other in (gone.id, uuid4()):
        with pytest.raises(NotFound):
            act(as_alice, memory.id, other, at=NOW, reasoning="whatever")
    with pytest.raises(BadRequest):
        act(as_alice, memory.id, memory.id, at=NOW, reasoning="whatever")


@pytest.mark.django_db(transaction=True)
def test_two_at_once_in_opposite_directions_leave_one_standing(alice):
    with isolation.acting_as(alice.pk):
        one = MemoryFactory(user=alice, text="Alice has a cat.")
        other = MemoryFactory(user=alice, text="Alice has a dog.")
    start = threading.Barrier(2)

    def work(pair):
        try:
            with isolation.acting_as(alice.pk):
                start.wait()
                supersede(alice, *pair)
        except errors.Conflict:
            return "refused"
        finally:
            connection.close()
        return "done"

    with ThreadPoolExecutor(2) as workers:
        results = list(workers.map(work, [(one, other), (other, one)]))
    assert sorted(results) == ["done", "refused"]
    with isolation.acting_as(alice.pk):
        assert len(seen(alice)) == 1


# --- Conflicts -------------------------------------------------------------------------------
def test_an_open_conflict_leaves_both_visible_and_marked(as_alice, births):
    assert len(seen(as_alice)) == 2
    assert MemoryLink.objects.for_user(as_alice).get().link_type == "conflicts"
    assert [row.id for row in truth.open_conflicts(as_alice, now=NOW)] == [births.id]


def test_the_same_pair_either_way_round_is_one_conflict(as_alice, births):
    assert conflict(as_alice, births.newer, births.older).id == births.id
    assert conflict(as_alice, births.older, births.newer).id == births.id
    assert Conflict.objects.for_user(as_alice).count() == 1


def test_keeping_the_newer_makes_the_older_past(as_alice, births):
    done = truth.resolve(as_alice, births.id, keep="newer", at=NOW)
    assert (done.status, done.kept) == ("resolved", "newer")
    assert seen(as_alice) == {"Alice was born in 1991."}
    assert len(seen(as_alice, past=True)) == 2
    link = MemoryLink.objects.for_user(as_alice).get()
    assert (link.link_type, link.author) == ("supersedes", "person")
    assert truth.resolve(as_alice, births.id, keep="newer", at=NOW).kept == "newer"


def test_keeping_the_older_archives_the_newer_and_reopens_what_that_replaced(as_alice, fact):
    older, newer = fact("Alice is 35.", days_ago=4), fact("Alice is 36.", days_ago=1)
    replaced = fact("Alice is thirty-four.", days_ago=9)
    supersede(as_alice, newer, replaced)
    found = conflict(as_alice, older, newer)
    truth.resolve(as_alice, found.id, keep="older", at=NOW)
    newer.refresh_from_db()
    older.refresh_from_db()
    assert newer.archive_reason == truth.SETTLED_AGAINST
    assert older.confirmed_at == NOW
    assert until(replaced) is None
    assert not MemoryLink.objects.for_user(as_alice).exists()


def test_keeping_both_dismisses_it_for_good(as_alice, births):
    truth.resolve(as_alice, births.id, keep="both", at=NOW)
    assert len(seen(as_alice)) == 2
    assert not truth.open_conflicts(as_alice, now=NOW).exists()
    assert conflict(as_alice, births.older, births.newer).status == "dismissed"
    assert not MemoryLink.objects.for_user(as_alice).exists()
    with pytest.raises(errors.Conflict):
        truth.resolve(as_alice, births.id, keep="newer", at=NOW)


def test_a_replacement_settles_the_conflict_of_the_two(as_alice, births):
    supersede(as_alice, births.newer, births.older)
    births.refresh_from_db()
    assert (births.status, births.kept) == ("resolved", "newer")


def test_bob_has_no_such_conflict(bob, births):
    with isolation.acting_as(bob.pk):
        with pytest.raises(NotFound):
            truth.resolve(bob, births.id, keep="newer", at=NOW)
        assert not truth.open_conflicts(bob, now=NOW).exists()
        assert truth.question_of_the_day(bob, today=NOW.date(), now=NOW) is None


# --- The question of the day -------------------------------------------------------------------
def test_one_conflict_is_asked_about_a_day_and_each_in_turn(as_alice, fact):
    first = conflict(as_alice, fact("Alice is 35.", days_ago=4), fact("Alice is 36."))
    second = conflict(as_alice, fact("Bo is a cat."), fact("Bo is a dog."))
    Conflict.objects.filter(id=second.id).update(created_at=NOW + timedelta(seconds=1))
    asked = []
    for days in (0, 0, 1, 2):
        moment = NOW + timedelta(days=days)
        question = truth.question_of_the_day(
            as_alice, today=moment.astimezone(BERLIN).date(), now=moment
        )
        asked.append(question and question.id)
        if question:
            truth.mark_asked(as_alice, question.id, at=moment)
    assert asked == [first.id, None, second.id, first.id]


def test_a_day_is_a_day_of_the_persons(as_alice, births):
    evening = datetime(2026, 11, 28, 22, 50, tzinfo=UTC)  # ten to midnight in Berlin
    truth.mark_asked(as_alice, births.id, at=evening)
    later = evening + timedelta(minutes=20)
    assert truth.question_of_the_day(as_alice, today=date(2026, 11, 28), now=evening) is None
    assert truth.question_of_the_day(as_alice, today=date(2026, 11, 29), now=later) == births


def test_nothing_is_asked_of_what_may_not_come_up(as_alice, births):
    Memory.objects.for_user(as_alice).filter(id=births.older_id).update(muted_at=NOW)
    assert truth.question_of_the_day(as_alice, today=NOW.date(), now=NOW) is None


# --- Asking for the past -----------------------------------------------------------------------
@pytest.mark.parametrize(
    "question",
    [
        "Where did I live before?",
        "where did I use to live",
        "What was my old phone number?",
        "Where did I work back then?",
        "Wo habe ich früher gewohnt?",
        "Wo wohnte ich damals?",
        "Où est-ce que j’habitais avant ?",
        "Quel était mon ancien numéro ?",
        "¿Dónde vivía antes?",
    ],
)
def test_a_question_for_the_past_is_heard(question):
    assert truth.asks_for_past(question)


@pytest.mark.parametrize(
    "question",
    [
        "Where do I live?",
        "Before we start: what is my boat called?",
        "Wo wohne ich?",
        "Où est-ce que j'habite ?",
        "Avant de partir, où sont mes clés ?",
        "¿Dónde vivo?",
        "",
    ],
)
def test_a_question_for_the_present_is_not(question):
    assert not truth.asks_for_past(question)


def test_a_span_is_written_in_the_persons_days():
    start, end = datetime(2019, 3, 1, tzinfo=UTC), datetime(2026, 11, 27, 23, 30, tzinfo=UTC)
    assert truth.span(start, end, BERLIN) == "from 1 March 2019 to 28 November 2026"
    assert truth.span(None, end, BERLIN) == "until 28 November 2026"
    assert truth.span(start, None, BERLIN) == "since 1 March 2019"
    assert truth.span(None, None, BERLIN) == ""
