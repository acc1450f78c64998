from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory import entities, selectors, services, truth
from memory.constants import FRESH_MIN, KEPT_MAX, RECALL_LIMIT
from memory.models import MemoryLink
from memory.naming import Named
from mira_site import embeddings
from mira_site.errors import EmbeddingsUnavailable
from tests.factories import MemoryFactory

NOW = datetime(2026, 11, 30, 9, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def remember(user, segment):
    return services.remember(user=user, segment_id=segment.id, messages=segment.messages, at=NOW)


def linked(user, source, target, link_type="refines"):
    return MemoryLink.objects.create(
        user=user, source=source, target=target, link_type=link_type, reasoning="They belong.",
        author="rule", created_at=NOW,
    )  # fmt: skip


def recalled(user, *queries, **kwargs):
    return [item.text for item in selectors.recall(user, list(queries), now=NOW, **kwargs)]


@pytest.fixture
def past(as_alice, segment):
    """A few things Alice said."""
    segment.said(
        "My boat is called Merula.",
        "My sister Anna is allergic to nuts.",
        "I work as a nurse in a hospital.",
        "I decided to go with PostgreSQL for the new project.",
        "I love rainy days.",
        "Meine Vermieterin heißt Frau Weber.",
    )
    remember(as_alice, segment)
    return segment


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("What is my boat called?", "My boat is called Merula."),
        ("who in my family has an allergy?", "My sister Anna is allergic to nuts."),
        ("what do I do for a living?", "I work as a nurse in a hospital."),
        ("which database did I choose?", "PostgreSQL"),
        ("Merula", "My boat is called Merula."),
        ("Wie heißt meine Vermieterin?", "Frau Weber"),
    ],
)
def test_a_question_finds_what_was_said(as_alice, past, query, answer):
    assert answer in recalled(as_alice, query)[0]


@pytest.mark.parametrize(
    "query",
    ["What is the capital of France?", "Explain quantum entanglement.", "42", "the of", " "],
)
def test_nothing_relevant_gives_nothing(as_alice, past, query):
    assert recalled(as_alice, query) == []


def test_where_no_memory_is_near_at_all_nothing_comes_and_nothing_breaks(as_alice):
    assert recalled(as_alice, "Hi") == []
    MemoryFactory(user=as_alice, text="The quince harvest was poor.")
    assert recalled(as_alice, "Hi", names=("Anna",), kept_ids=(uuid4(),)) == []


def test_one_word_of_a_long_question_is_enough(as_alice, past):
    question = "I cannot recall it just now, would you say whether I ever named the Merula thing?"
    assert "Merula" in recalled(as_alice, question)[0]


def test_several_queries_are_answered_together(as_alice, past):
    found = " ".join(recalled(as_alice, "my boat", "my sister's allergy"))
    assert "Merula" in found
    assert "Anna" in found


def test_a_recalled_memory_says_why_and_from_where(as_alice, past):
    item = selectors.recall(as_alice, "What is my boat called?", now=NOW)[0]
    assert item.why.text.startswith("matches “")
    assert "boat" in item.why.text
    assert item.why.text.endswith("said on 28 November 2026")
    (source,) = item.sources
    assert source.message_id == past.messages[0].message_id
    assert source.sentence == "My boat is called Merula."
    assert item.short_id == item.id.hex[:8]
    assert 0 < item.similarity <= 1


def test_what_shares_no_word_is_said_to_be_close_in_meaning(as_alice, past):
    item = selectors.recall(as_alice, "occupation", now=NOW)[0]
    assert item.why.text == "close in meaning, said on 28 November 2026"


def test_an_archived_memory_is_never_recalled(as_alice):
    kept = MemoryFactory(user=as_alice, text="Alice sails on Sundays.")
    gone = MemoryFactory(user=as_alice, text="Alice likes sailing.")
    services.archive(user=as_alice, memory_id=gone.id, reason="duplicate")
    assert recalled(as_alice, "sailing") == [kept.text]


def test_an_expired_memory_is_never_recalled(as_alice):
    MemoryFactory(user=as_alice, text="Alice sails today.", expires_at=NOW - timedelta(seconds=1))
    kept = MemoryFactory(user=as_alice, text="Alice sails.", expires_at=NOW + timedelta(days=1))
    assert recalled(as_alice, "sailing") == [kept.text]


def test_another_person_recalls_nothing_of_it(as_alice, past, bob, acting):
    with acting(bob):
        assert recalled(bob, "What is my boat called?") == []


def test_outside_their_owners_scope_not_even_a_query_for_the_owner_is_answered(
    as_alice, past, bob, acting
):
    with acting(bob), pytest.raises(RuntimeError, match="outside the scope"):
        recalled(as_alice, "What is my boat called?")


def test_the_limit_holds_and_the_best_come_first(as_alice):
    for number in range(6):
        MemoryFactory(user=as_alice, text=f"Alice went sailing with friend number {number}.")
    best = MemoryFactory(user=as_alice, text="Alice's sailing boat is called Merula.")
    found = recalled(as_alice, "sailing boat called Merula", limit=3)
    assert len(found) == 3
    assert found[0] == best.text


def test_the_order_is_the_same_each_time(as_alice):
    moment = NOW
    for number in range(8):
        MemoryFactory(user=as_alice, text=f"Alice met cousin {number}.", created_at=moment)
    first = recalled(as_alice, "cousin")
    assert all(recalled(as_alice, "cousin") == first for _ in range(3))


def test_a_rare_word_weighs_more_than_a_common_one(as_alice):
    for number in range(10):
        MemoryFactory(user=as_alice, text=f"The garden has flower number {number}.")
    rare = MemoryFactory(user=as_alice, text="The quince stands there.")
    item = selectors.recall(as_alice, "garden quince", now=NOW)[0]
    assert item.id == rare.id


def test_the_number_of_statements_does_not_grow_with_what_is_found(
    as_alice, past, django_assert_num_queries
):
    # One of them reads what this transaction has written, which is kept nowhere.
    with django_assert_num_queries(5):
        selectors.recall(as_alice, ["my boat", "my sister", "my work"], now=NOW)
    several = [MemoryFactory(user=as_alice, text=f"The boat has sail {n}.") for n in range(6)]
    for one, two in pairwise(several):
        linked(as_alice, one, two)
    with django_assert_num_queries(7):
        found = selectors.recall(as_alice, ["my boat", "sails"], now=NOW, names=["Anna"])
    assert len(found) > 3


def test_without_embeddings_the_words_still_answer(as_alice, past, monkeypatch):
    def away(*args):
        raise EmbeddingsUnavailable("Away.")

    monkeypatch.setattr(embeddings, "_encoder", away)
    embeddings.forget_queries()
    assert "Merula" in recalled(as_alice, "What is my boat called?")[0]
    assert recalled(as_alice, "occupation") == []


@pytest.mark.parametrize(
    "query", ["'; DROP TABLE x; --", "a & b | !c", "\\ ' :* <-> (", "50% of %s", "\x00nul"]
)
def test_signs_in_a_query_are_only_signs(as_alice, past, query):
    recalled(as_alice, query)


# --- What may come up --------------------------------------------------------------------------
HIDDEN = {
    "archived": {"archived_at": NOW},
    "quarantined": {"quarantined_at": NOW},
    "muted": {"muted_at": NOW},
    "expired": {"expires_at": NOW},
    "past": {"valid_until": NOW},
}


@pytest.mark.parametrize("state", HIDDEN)
def test_what_may_not_come_up_is_shown_by_no_path(as_alice, state):
    hidden = MemoryFactory(user=as_alice, text="Merula lies in Trieste.", **HIDDEN[state])
    entities.attach(as_alice, {hidden.id: [Named(name="Merula")]}, at=NOW)
    primary = MemoryFactory(user=as_alice, text="Alice loves sailing.")
    linked(as_alice, primary, hidden)
    for query, how in [
        ("Trieste", {}),
        ("Where does the ship lie?", {}),
        ("What is there to say?", {"names": ["Merula"]}),
        ("sailing", {}),
        ("sailing", {"kept_ids": [hidden.id, primary.id]}),
    ]:
        found = selectors.recall(as_alice, query, now=NOW, **how)
        shown = {item.id for item in found} | {one.id for item in found for one in item.linked}
        assert hidden.id not in shown
    assert recalled(as_alice, "sailing") == ["Alice loves sailing."]


def test_no_path_leads_to_another_person(as_alice, bob, acting):
    with acting(bob):
        theirs = MemoryFactory(user=bob, text="Merula lies in Trieste.")
        entities.attach(bob, {theirs.id: [Named(name="Merula")]}, at=NOW)
    mine = MemoryFactory(user=as_alice, text="Alice loves sailing.")
    for query in ("Merula", "sailing"):
        found = selectors.recall(
            as_alice, query, now=NOW, names=["Merula"], kept_ids=[theirs.id, mine.id]
        )
        assert {item.id for item in found} == {mine.id}
    assert selectors.compared(as_alice, [theirs.id, mine.id], ["sail"], now=NOW)[0].id == mine.id
    with acting(bob):
        assert selectors.recall(bob, "sailing", now=NOW, kept_ids=[mine.id]) == []
        assert selectors.compared(bob, [mine.id], ["sail"], now=NOW) == []


def test_a_wing_and_a_room_narrow_it_whatever_the_case_of_their_letters(as_alice):
    for wing, room in [("Work", "Harbour"), ("Work", "Dock"), ("Home", "Harbour")]:
        text = f"The boat lies at {wing} {room}."
        one = MemoryFactory(user=as_alice, text=text, wing=wing, room=room)
        entities.attach(as_alice, {one.id: [Named(name="Merula")]}, at=NOW)
    for how, count in [
        ({"wing": "work"}, 2),
        ({"room": "HARBOUR"}, 2),
        ({"wing": "WORK", "room": "harbour"}, 1),
        ({"wing": "garden"}, 0),
        ({}, 3),
    ]:
        assert len(recalled(as_alice, "Where does the boat lie?", names=["Merula"], **how)) == count


# --- Truth over time ---------------------------------------------------------------------------
def test_the_newest_truth_answers_and_the_old_one_only_as_past(as_alice):
    old = MemoryFactory(user=as_alice, text="Alice lives in Graz.", created_at=NOW)
    new = MemoryFactory(user=as_alice, text="Alice lives in Linz.", created_at=NOW)
    truth.supersede(as_alice, new.id, old.id, at=NOW - timedelta(days=9), reasoning="She moved.")
    assert recalled(as_alice, "Where do I live?") == ["Alice lives in Linz."]
    found = selectors.recall(as_alice, "Where did I live before?", now=NOW, past=True)
    by_id = {item.id: item for item in found}
    assert (by_id[old.id].is_past, by_id[new.id].is_past) == (True, False)
    assert by_id[old.id].replaced_by == (new.id,)
    text = selectors.element(by_id[old.id], zone=BERLIN)
    assert 'true="' in text
    assert "2026" in text
    assert f'replaced_by="mem_{new.short_id}"' in text


def test_what_is_superseded_but_not_closed_stands_far_behind(as_alice):
    old = MemoryFactory(user=as_alice, text="Alice's boat is red.", importance=1.0)
    new = MemoryFactory(user=as_alice, text="The boat of Alice is blue now.", importance=0.1)
    linked(as_alice, new, old, "supersedes")
    first, second = selectors.recall(as_alice, "Alice's boat is red", now=NOW)
    assert (first.id, second.id) == (new.id, old.id)
    assert second.replaced_by == (new.id,)


def test_an_open_conflict_is_shown_as_undecided(as_alice):
    one = MemoryFactory(user=as_alice, text="Anna's birthday is on 3 May.")
    other = MemoryFactory(user=as_alice, text="Anna's birthday is on 5 May.")
    open_one = truth.conflict(as_alice, one.id, other.id, reasoning="Two dates.", at=NOW)
    found = {item.id: item for item in selectors.recall(as_alice, "Anna's birthday", now=NOW)}
    assert found[one.id].disputed_by == (other.id,)
    text = selectors.element(found[other.id], zone=BERLIN)
    assert f'undecided_against="mem_{one.short_id}"' in text
    truth.resolve(as_alice, open_one.id, keep="both", at=NOW)
    found = selectors.recall(as_alice, "Anna's birthday", now=NOW)
    assert all(item.disputed_by == () for item in found)


# --- Names and links ---------------------------------------------------------------------------
def test_a_name_brings_what_mentions_it_without_likeness_or_words(as_alice):
    hub = MemoryFactory(user=as_alice, text="Rhubarb needs shade.")
    entities.attach(as_alice, {hub.id: [Named(name="Anna")]}, at=NOW)
    nearer = MemoryFactory(user=as_alice, text="Anna is allergic to nuts.")
    found = selectors.recall(
        as_alice, ["What is Anna allergic to?", "nuts"], now=NOW, names=["Anna"]
    )
    assert [item.id for item in found] == [nearer.id, hub.id]
    why = found[1].why
    assert (why.path, why.name, why.text[:13]) == ("entity", "Anna", "mentions Anna")
    assert why.parts.similarity < 0.3
    assert why.parts.relevance > 0


def test_without_embeddings_a_name_still_leads_to_its_memories(as_alice, monkeypatch):
    hub = MemoryFactory(user=as_alice, text="Rhubarb needs shade.")
    entities.attach(as_alice, {hub.id: [Named(name="Anna")]}, at=NOW)

    def away(*args):
        raise EmbeddingsUnavailable("Away.")

    monkeypatch.setattr(embeddings, "_encoder", away)
    embeddings.forget_queries()
    (item,) = selectors.recall(as_alice, "So what of it?", now=NOW, names=["Anna"])
    assert (item.id, item.similarity) == (hub.id, 0.0)


def test_linked_memories_stand_with_their_primary_two_at_most_in_both_directions(as_alice):
    boat = MemoryFactory(user=as_alice, text="Alice's boat is called Merula.")
    others = [
        MemoryFactory(user=as_alice, text=text, importance=importance)
        for text, importance in [
            ("Varnish dries in two days.", 0.2), ("Berth seven is leaky.", 0.9),
            ("Rust comes back.", 0.5),
        ]
    ]  # fmt: skip
    linked(as_alice, boat, others[0])
    linked(as_alice, others[1], boat)
    linked(as_alice, boat, others[2], "precedes")
    (item,) = selectors.recall(as_alice, "What is the boat called?", now=NOW)
    assert [one.id for one in item.linked] == [others[1].id, others[2].id]
    first = item.linked[0]
    assert (first.outward, first.link_type, first.depth) == (False, "refines", 1)
    assert (first.why.path, first.why.linked_to) == ("link", boat.id)
    assert boat.text not in first.why.text
    text = selectors.element(item, zone=BERLIN)
    assert f'<linked how="refines" id="mem_{first.short_id}"' in text
    assert "They belong." not in text


def test_a_linked_memory_is_shown_once_and_never_if_it_is_a_primary(as_alice):
    sails = [MemoryFactory(user=as_alice, text=f"The boat has sail {n}.") for n in range(3)]
    aside = MemoryFactory(user=as_alice, text="Rhubarb needs shade.")
    for one in sails:
        linked(as_alice, one, aside)
    linked(as_alice, sails[0], sails[1])
    found = selectors.recall(as_alice, "boat sails", now=NOW)
    assert {item.id for item in found} == {one.id for one in sails}
    assert [one.id for item in found for one in item.linked] == [aside.id]


# --- Kept and fresh ----------------------------------------------------------------------------
@pytest.fixture
def trips(as_alice):
    return [
        MemoryFactory(user=as_alice, text=f"A sailing trip to island {n}.", importance=n / 20)
        for n in range(14)
    ]


def test_kept_ones_come_first_and_take_no_fresh_place(as_alice, trips):
    before = selectors.recall(as_alice, "sailing trip", now=NOW)
    kept = [before[4].id, before[1].id]
    found = selectors.recall(as_alice, "sailing trip", now=NOW, kept_ids=kept)
    assert [item.id for item in found[:2]] == kept
    assert [item.why.path for item in found[:2]] == ["kept", "kept"]
    assert found[0].why.text.startswith("still being talked about, noted on ")
    fresh = [item.id for item in before if item.id not in kept]
    assert [item.id for item in found[2:]][: len(fresh)] == fresh
    assert len(found) == RECALL_LIMIT


def test_of_too_many_kept_ones_the_most_important_stay_in_their_order(as_alice, trips):
    kept = [trip.id for trip in trips[:9]]
    found = selectors.recall(as_alice, "sailing trip", now=NOW, kept_ids=kept)
    assert [item.id for item in found[:KEPT_MAX]] == kept[3:]


def test_a_kept_one_need_not_answer(as_alice, trips):
    aside = MemoryFactory(user=as_alice, text="Rhubarb needs shade.")
    found = selectors.recall(as_alice, "sailing trip", now=NOW, kept_ids=[aside.id])
    assert found[0].id == aside.id
    assert len(found) == RECALL_LIMIT


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    kept=st.lists(st.integers(0, 17), max_size=16),
    limit=st.integers(0, 12),
    query=st.sampled_from(["sailing trip", "island 3", "rhubarb", "the", "trip rhubarb"]),
)
def test_the_caps_hold_in_every_combination(as_alice, trips, kept, limit, query):
    ids = [trip.id for trip in trips] + [uuid4() for _ in range(4)]
    kept_ids = [ids[number] for number in kept]
    found = selectors.recall(as_alice, query, now=NOW, kept_ids=kept_ids, limit=limit)
    shown = [item.id for item in found]
    assert len(shown) == len(set(shown)) <= limit
    paths = [item.why.path for item in found]
    stayed = paths.count("kept")
    assert paths[:stayed] == ["kept"] * stayed
    real = {one for one in kept_ids if one in ids[:14]}
    assert stayed == min(len(real), KEPT_MAX, max(0, limit - FRESH_MIN))
    assert set(shown[:stayed]) <= real
    assert not set(shown[stayed:]) & set(kept_ids)


# --- Relevance and importance ------------------------------------------------------------------
# Question, the exact answer (of least importance), and what only touches the subject (of the most).
TOUCHED = [
    ("What is my boat called?", "Alice's boat is called Merula.", "Alice learns to row a boat."),
    ("Who is allergic to nuts?", "Anna is allergic to nuts.", "Anna is Alice's only sister."),
    ("Which car do I drive?", "Alice drives an old Volvo.", "Alice failed her driving test once."),
    ("When do I see the dentist?", "Alice sees the dentist on Tuesday.", "Alice fears dentists."),
    ("Where do I work?", "Alice works at the harbour office.", "Alice has a lot of work."),
    ("What does Tom study?", "Tom studies medicine in Graz.", "Tom is Alice's eldest son."),
    ("What is the cat's name?", "The cat is named Mitzi.", "Alice's cat is everything to her."),
    ("Wie heißt mein Chef?", "Alices Chef heißt Huber.", "Alice streitet mit ihrem Chef."),
]


@pytest.mark.parametrize(("query", "answer", "touching"), TOUCHED)
def test_an_exact_match_of_no_importance_beats_what_is_important_and_beside_the_point(
    as_alice, query, answer, touching
):
    exact = MemoryFactory(user=as_alice, text=answer, importance=0.05)
    MemoryFactory(user=as_alice, text=touching, importance=1.0)
    MemoryFactory(user=as_alice, text="Alice will marry in June.", importance=1.0)
    assert selectors.recall(as_alice, query, now=NOW)[0].id == exact.id


def test_of_two_that_answer_alike_the_more_important_one_stands_first(as_alice):
    for low, high in [(0.1, 0.9), (0.9, 0.1)]:
        one = MemoryFactory(
            user=as_alice, text=f"Alice met her cousin Vera in Graz ({low}).", importance=low
        )
        other = MemoryFactory(
            user=as_alice, text=f"Alice met her cousin Paula in Graz ({high}).", importance=high
        )
        best = one if low > high else other
        assert selectors.recall(as_alice, "cousin in Graz", now=NOW)[0].id == best.id
        one.delete()
        other.delete()


def test_a_score_is_its_parts(as_alice):
    MemoryFactory(user=as_alice, text="Alice's boat is called Merula.", importance=0.4)
    item = selectors.recall(as_alice, "What is the boat called?", now=NOW)[0]
    parts = item.why.parts
    assert item.score == pytest.approx(parts.relevance * (0.8 + 0.2 * parts.importance))
    assert (parts.importance, parts.overlap) == (0.4, 1.0)
    assert (item.why.phrase, item.why.path) == ("What is the boat called?", "words")


def test_why_names_the_phrase_and_the_sentence(as_alice, past):
    found = selectors.recall(as_alice, ["something else", "the boat's name"], now=NOW)
    why = found[0].why
    assert why.phrase == "the boat's name"
    assert why.sentence == "My boat is called Merula."
    assert why.said_at == past.messages[0].said_at
