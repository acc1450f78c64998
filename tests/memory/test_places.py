"""Wings and rooms: names, defaults, spellings, and what is counted of them."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from memory import places, selectors, services
from memory.constants import PLACE_MAX_CHARS
from memory.models import Fingerprint, Memory
from mira_site import isolation, tokens
from mira_site.errors import BadRequest
from tests.factories import MemoryFactory

pytestmark = pytest.mark.django_db
URL = "/api/v1/memories/"


def place(memory: Memory) -> tuple[str, str]:
    return memory.wing, memory.room


@pytest.mark.parametrize(
    ("memory_type", "room"),
    [
        ("decision", "decisions"),
        ("fact", "facts"),
        ("preference", "preferences"),
        ("session_note", "session"),
        ("debug_log", "debug"),
    ],
)
def test_without_a_place_it_goes_to_life_and_to_the_room_of_its_type(
    as_alice, embedder, memory_type, room
):
    memory = services.create(user=as_alice, text="Alice sails.", memory_type=memory_type)
    assert place(memory) == ("life", room)


def test_what_a_conversation_leaves_behind_has_a_place(as_alice, segment, embedder):
    segment.said("My boat is called Merula.")
    services.remember(
        user=as_alice, segment_id=segment.id, messages=segment.messages, at=segment.at
    )
    assert place(Memory.objects.for_user(as_alice).get()) == ("life", "facts")


def test_the_spelling_that_is_there_is_used_again(as_alice, embedder):
    services.create(user=as_alice, text="Alice sails.", wing="Überfahrt", room="Log Book")
    again = services.create(
        user=as_alice, text="The mast is high.", wing="  überFAHRT", room="log   BOOK "
    )
    assert place(again) == ("Überfahrt", "Log Book")


def test_a_room_is_spelt_by_its_own_wing(as_alice, embedder):
    services.create(user=as_alice, text="Alice sails.", wing="boat", room="Plans")
    other = services.create(user=as_alice, text="Alice bakes bread.", wing="home", room="plans")
    assert place(other) == ("home", "plans")


def test_two_facts_of_one_moment_share_a_spelling(as_alice):
    spelt = places.Spellings(as_alice)
    assert spelt.settle("Boat", "", "fact") == ("Boat", "facts")
    assert spelt.settle("boat", "FACTS", "fact") == ("Boat", "facts")


def test_somebody_elses_spelling_is_nobodys_business(as_alice, bob, embedder):
    services.create(user=as_alice, text="Alice sails.", wing="Boat")
    with isolation.acting_as(bob.pk):
        theirs = services.create(user=bob, text="Bob rows.", wing="boat")
        assert theirs.wing == "boat"
        assert [wing.name for wing in places.wings(bob)] == ["boat"]


@pytest.mark.parametrize("name", ["ok", "Küche", "仕事", "हिंदी", "a-b_c 2", "x" * PLACE_MAX_CHARS])
def test_names_of_any_language_are_good(name):
    assert places.objection(places.tidy(name)) == ""


@pytest.mark.parametrize(
    "name", ["a/b", "a.b", "<b>", "tab\u200bzero", "x" * (PLACE_MAX_CHARS + 1), "\u0301x", "🙂"]
)
@pytest.mark.parametrize("field", ["wing", "room"])
def test_a_bad_name_is_refused_by_its_field(as_alice, embedder, field, name):
    with pytest.raises(BadRequest) as caught:
        services.create(user=as_alice, text="Alice sails.", **{field: name})
    assert list(caught.value.fields) == [field]
    memory = services.create(user=as_alice, text="Alice sails.")
    with pytest.raises(BadRequest) as caught:
        services.edit(user=as_alice, memory_id=memory.id, **{field: name})
    assert list(caught.value.fields) == [field]


def test_an_edit_moves_and_an_empty_name_moves_back(as_alice, embedder):
    services.create(user=as_alice, text="Alice bakes bread.", wing="Home", room="Kitchen")
    memory = services.create(user=as_alice, text="Alice sails.", memory_type="fact")
    moved = services.edit(user=as_alice, memory_id=memory.id, wing="home", room="kitchen")
    assert place(moved) == ("Home", "Kitchen")
    back = services.edit(user=as_alice, memory_id=memory.id, wing="", room="")
    assert place(back) == ("life", "facts")


def test_a_room_that_came_with_the_type_changes_with_it_and_a_chosen_one_does_not(
    as_alice, embedder
):
    by_type = services.create(user=as_alice, text="Alice sails.")
    chosen = services.create(user=as_alice, text="The mast is high.", room="boat")
    for memory, room in ((by_type, "decisions"), (chosen, "boat")):
        edited = services.edit(user=as_alice, memory_id=memory.id, memory_type="decision")
        assert edited.room == room


def test_no_row_is_without_a_place(as_alice, embedder):
    with pytest.raises(IntegrityError, match="memory_has_a_place"), transaction.atomic():
        MemoryFactory(user=as_alice, wing="")


def test_the_list_narrows_to_a_place_whatever_its_case(as_alice, api, embedder):
    services.create(user=as_alice, text="Alice sails.", wing="Überfahrt", room="Boat")
    services.create(user=as_alice, text="Alice bakes bread.")

    def found(**query):
        return [row["text"] for row in api.get(URL, query).json()["results"]]

    assert found(wing="überfahrt") == found(room="BOAT") == ["Alice sails."]
    assert found(wing="ÜBERFAHRT", room="facts") == []
    assert len(found(wing="")) == 2


def test_wings_are_listed_with_their_rooms_and_counts(as_alice, api, embedder):
    for text in ("Alice sails.", "The mast is high."):
        services.create(user=as_alice, text=text, wing="boat", room="rig")
    services.create(user=as_alice, text="Alice bakes bread.", memory_type="fact")
    gone = services.create(user=as_alice, text="Alice had a dog.", wing="past")
    services.archive(user=as_alice, memory_id=gone.id, reason="over")
    assert api.get(f"{URL}wings/").json() == [
        {"name": "boat", "memories": 2, "rooms": [{"name": "rig", "memories": 2}]},
        {"name": "life", "memories": 1, "rooms": [{"name": "facts", "memories": 1}]},
    ]


def test_the_api_says_which_name_is_bad(api):
    answer = api.post(URL, {"text": "Alice sails.", "wing": "a/b"}, format="json")
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == ["wing"]


def test_the_edit_page_says_which_name_is_bad(as_alice, client, embedder):
    memory = services.create(user=as_alice, text="Alice sails.")
    client.force_login(as_alice)
    page = client.post(
        f"/memories/{memory.id}/edit/",
        {"text": "Alice sails.", "memory_type": "fact", "wing": "a/b", "room": "facts"},
    )
    assert "Use letters, digits, spaces, hyphens and underscores." in page.content.decode()


def test_status_counts_what_there_is(as_alice, api, bob, embedder):
    texts = ("Alice sails.", "Jana, Alice's sister, gets seasick. ☀")
    first, second = (
        services.create(user=as_alice, text=text, memory_type="fact") for text in texts
    )
    services.link(
        user=as_alice, source_id=first.id, target_id=second.id, link_type="because",
        reasoning="Both sail.", author="person", at=first.created_at,
    )  # fmt: skip
    gone = services.create(user=as_alice, text="Alice had a dog.", memory_type="preference")
    services.archive(user=as_alice, memory_id=gone.id, reason="over")
    with isolation.acting_as(bob.pk):
        services.create(user=bob, text="Bob rows.")
    body = api.get(f"{URL}status/").json()
    assert (body["memories"], body["archived"]) == (2, 1)
    assert body["types"] == {"fact": 2}
    assert body["links"] == {"because": 1}
    assert body["tokens"] == sum(map(tokens.estimate, texts))
    assert body["fingerprints"] == Fingerprint.objects.for_user(as_alice).count()
    assert [wing["name"] for wing in body["wings"]] == ["life"]


def test_of_nothing_there_is_nothing_to_count(as_alice):
    assert (selectors.status(as_alice).memories, selectors.status(as_alice).tokens) == (0, 0)
    assert places.wings(as_alice) == ()
