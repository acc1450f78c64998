"""Merging loses nothing, is all or nothing, and can be taken back."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
import time_machine
from django.apps import apps
from django.utils import timezone

from memory import details, merging, selectors, services
from memory.models import (
    Annotation,
    Conflict,
    Entity,
    Memory,
    MemoryAccess,
    MemoryEntity,
    MemoryLink,
    MemoryRevision,
    MemorySource,
    Merge,
    MergeSource,
    Trust,
)
from mira_site import errors, isolation
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, NotFound
from tests.conversations.talking import at_once
from tests.factories import MemoryFactory

pytestmark = pytest.mark.usefixtures("embedder")

BOAT = "Alice's boat is called Merula."
BERTH = "Alice's boat lies in Izola."
BOTH = "Alice's boat is called Merula and lies in Izola."


def pair(user: User, **fields: Any) -> list[Memory]:
    return [MemoryFactory(user=user, text=text, **fields) for text in (BOAT, BERTH)]


def merge(user: User, rows: list[Memory], text: str = BOTH, note: str = "") -> Merge:
    return services.merge(user=user, memory_ids=[row.id for row in rows], text=text, note=note)


def result_of(made: Merge) -> Memory:
    row: Memory = Memory.objects.for_user(made.user_id).get(id=made.result_id)
    return row


def link(source: Memory, target: Memory, kind: str = "refines", **fields: Any) -> MemoryLink:
    row: MemoryLink = MemoryLink.objects.create(
        user=source.user,
        source=source,
        target=target,
        link_type=kind,
        author="model",
        created_at=fields.pop("at", timezone.now()),
        **fields,
    )
    return row


def source_of(memory: Memory, sentence: str, message_id: UUID | None = None) -> MemorySource:
    row: MemorySource = MemorySource.objects.create(
        user=memory.user,
        memory=memory,
        segment_id=uuid4(),
        message_id=message_id or uuid4(),
        sentence=sentence,
        said_at=timezone.now(),
    )
    return row


def test_the_merged_memory_answers_and_its_parts_do_not(as_alice: User) -> None:
    parts = pair(as_alice)
    made = merge(as_alice, parts)
    found = selectors.recall(as_alice, "What is the boat called?", limit=5, now=timezone.now())
    assert [item.id for item in found] == [made.result_id]
    for part in parts:
        part.refresh_from_db()
        assert part.archive_reason == "merged"


def test_a_merge_keeps_the_age_and_the_least_trust_and_the_highest_stakes(as_alice: User) -> None:
    long_ago = datetime(2026, 1, 5, 12, tzinfo=UTC)
    moved = datetime(2025, 5, 1, tzinfo=UTC)
    one = MemoryFactory(
        user=as_alice, text=BOAT, created_at=long_ago, created_use_day=3, trust=Trust.TOOL, stakes=2
    )
    other = MemoryFactory(user=as_alice, text=BERTH, created_use_day=40, valid_from=moved)
    result = result_of(merge(as_alice, [other, one]))
    assert (result.created_at, result.created_use_day) == (long_ago, 3)
    assert (result.trust, result.stakes, result.valid_from) == (Trust.TOOL, 2, moved)
    assert result.tended_at is not None


def test_a_deadline_of_one_part_is_the_deadline_of_the_whole(as_alice: User) -> None:
    at = datetime(2027, 3, 1, 9, tzinfo=UTC)
    one, other = pair(as_alice)
    Memory.objects.for_user(as_alice).filter(id=one.id).update(happens_at=at, expires_at=at)
    result = result_of(merge(as_alice, [one, other]))
    assert (result.happens_at, result.expires_at) == (at, at)


def test_sources_notes_accesses_and_mentions_are_united(as_alice: User) -> None:
    one, other = pair(as_alice)
    shared, segment = uuid4(), uuid4()
    source_of(one, "She is called Merula.", shared)
    source_of(other, "She lies in Izola.", shared)
    source_of(other, "Izola it is.")
    now = timezone.now()
    entity = Entity.objects.create(
        user=as_alice, name="Merula", normalised="merula", entity_type="product", created_at=now
    )
    for part in (one, other):
        MemoryEntity.objects.create(user=as_alice, memory=part, entity=entity)
        Annotation.objects.create(
            user=as_alice, memory=part, text="Look again.", author="person", created_at=now
        )
        MemoryAccess.objects.create(
            user=as_alice, memory=part, segment_id=segment, kind="used", use_day=1, accessed_at=now
        )
    result = result_of(merge(as_alice, [one, other]))
    assert sorted(result.sources.values_list("sentence", flat=True)) == [
        "Izola it is.",
        "She is called Merula. She lies in Izola.",
    ]
    assert result.annotations.count() == 1
    assert result.accesses.count() == 1
    assert result.entity_links.count() == 1


def test_links_are_turned_both_ways_and_the_newest_of_several_stays(as_alice: User) -> None:
    one, other = pair(as_alice)
    harbour = MemoryFactory(user=as_alice, text="Izola has a small harbour.")
    now = timezone.now()
    link(one, other)
    link(one, harbour, "refines", at=now - timedelta(days=2))
    link(other, harbour, "exemplifies", at=now - timedelta(days=1))
    link(harbour, one, "contextualizes")
    result = result_of(merge(as_alice, [one, other]))
    assert [row.link_type for row in result.links_out.all()] == ["exemplifies"]
    assert [row.link_type for row in result.links_in.all()] == ["contextualizes"]


def test_an_open_conflict_of_a_part_stays_open_with_the_whole(as_alice: User) -> None:
    one, other = pair(as_alice)
    rival = MemoryFactory(user=as_alice, text="Alice's boat lies in Piran.")
    Conflict.objects.create(user=as_alice, older=other, newer=rival, created_at=timezone.now())
    made = merge(as_alice, [one, other])
    assert Conflict.objects.for_user(as_alice).filter(older=made.result_id, newer=rival).exists()


def test_what_contradicts_is_not_merged(as_alice: User) -> None:
    one, other = pair(as_alice)
    Conflict.objects.create(user=as_alice, older=one, newer=other, created_at=timezone.now())
    with pytest.raises(errors.Conflict, match="contradict"):
        merge(as_alice, [one, other])


@pytest.mark.parametrize(
    "text",
    [
        "Alice's boat is called Merula.",
        "short",
        BOTH + " It is a wonderful boat and everybody admires it." * 6,
        "Alice has a boat with a name, and it lies in some harbour.",
    ],
)
def test_a_text_that_cannot_stand_for_its_parts_is_refused(as_alice: User, text: str) -> None:
    parts = pair(as_alice)
    with pytest.raises(BadRequest):
        merge(as_alice, parts, text)
    assert Memory.objects.for_user(as_alice).live().count() == 2


def test_what_is_missing_is_named_apart_from_the_message(as_alice: User) -> None:
    with pytest.raises(merging.DetailsLost) as refused:
        merge(as_alice, pair(as_alice), "Alice's boat is called Merula, and lies there.")
    assert refused.value.missing == ("Izola",)
    assert "Izola" not in str(refused.value)


@pytest.mark.parametrize("name", ["happens_at", "expires_at"])
def test_facts_of_different_times_are_not_merged(as_alice: User, name: str) -> None:
    one = MemoryFactory(user=as_alice, text=BOAT, **{name: datetime(2027, 1, 1, tzinfo=UTC)})
    other = MemoryFactory(user=as_alice, text=BERTH, **{name: datetime(2027, 1, 2, tzinfo=UTC)})
    with pytest.raises(errors.Conflict):
        merge(as_alice, [one, other])


@pytest.mark.parametrize("name", ["archived_at", "quarantined_at", "muted_at", "valid_until"])
def test_only_what_may_come_up_is_merged(as_alice: User, name: str) -> None:
    one, other = pair(as_alice)
    Memory.objects.for_user(as_alice).filter(id=one.id).update(**{name: timezone.now()})
    with pytest.raises(errors.Conflict):
        merge(as_alice, [one, other])


def test_one_memory_is_too_few(as_alice: User) -> None:
    (one, _) = pair(as_alice)
    with pytest.raises(BadRequest):
        merge(as_alice, [one, one])


def test_nobody_merges_or_undoes_what_is_somebody_elses(as_alice: User, bob: User) -> None:
    parts = pair(as_alice)
    made = merge(as_alice, parts)
    fresh = MemoryFactory(user=as_alice, text="Alice sails on Sundays.")
    with isolation.acting_as(bob.pk):
        own = MemoryFactory(user=bob, text="Bob sails on Sundays.")
        with pytest.raises(NotFound):
            merge(bob, [own, fresh], "Alice and Bob sails on Sundays.")
        with pytest.raises(NotFound):
            services.undo_merge(user=bob, merge_id=made.id)
    assert result_of(made).archived_at is None


def test_a_part_changed_between_look_and_swap_stops_the_merge(as_alice: User) -> None:
    parts = pair(as_alice)
    staged = merging.stage(as_alice, [part.id for part in parts], BOTH)
    services.edit(user=as_alice, memory_id=parts[0].id, text="Alice's boat is called Larus.")
    with pytest.raises(errors.Conflict, match="changed"):
        merging.swap(as_alice, staged, author=MemoryRevision.Author.CURATOR, at=timezone.now())
    assert Memory.objects.for_user(as_alice).live().count() == 2


def test_a_merge_is_undone_twice_like_once(as_alice: User) -> None:
    parts = pair(as_alice)
    made = merge(as_alice, parts)
    services.undo_merge(user=as_alice, merge_id=made.id)
    services.undo_merge(user=as_alice, merge_id=made.id)
    live = Memory.objects.for_user(as_alice).live().values_list("id", flat=True)
    assert set(live) == {part.id for part in parts}
    assert result_of(made).archive_reason == "merge undone"


def test_after_thirty_days_it_is_too_late_and_says_what_to_do(as_alice: User) -> None:
    made = merge(as_alice, pair(as_alice))
    with (
        time_machine.travel(timezone.now() + timedelta(days=31)),
        pytest.raises(errors.Conflict, match="archive"),
    ):
        services.undo_merge(user=as_alice, merge_id=made.id)


def test_a_merge_within_a_later_merge_is_undone_after_that(as_alice: User) -> None:
    made = merge(as_alice, pair(as_alice))
    crew = MemoryFactory(user=as_alice, text="Alice sails with Berta.")
    whole = BOTH[:-1] + ", and she sails with Berta."
    later = merge(as_alice, [result_of(made), crew], whole)
    with pytest.raises(errors.Conflict, match="Undo that merge first"):
        services.undo_merge(user=as_alice, merge_id=made.id)
    services.undo_merge(user=as_alice, merge_id=later.id)
    services.undo_merge(user=as_alice, merge_id=made.id)


def test_a_twin_made_since_stands_in_the_way_of_undoing(as_alice: User) -> None:
    made = merge(as_alice, pair(as_alice))
    MemoryFactory(user=as_alice, text=BOAT)
    with pytest.raises(errors.Conflict, match="says the same"):
        services.undo_merge(user=as_alice, merge_id=made.id)
    assert result_of(made).archived_at is None


NAMES = ("Anna", "Berta", "Clara", "Dora", "Emma", "Frida", "Greta", "Hanna")
OWNED = (
    "Memory", "MemoryLink", "MemorySource", "MemoryAccess", "Annotation", "MemoryEntity",
    "Conflict",
)  # fmt: skip


def everything(user: User, but: set[UUID]) -> set[tuple[Any, ...]]:
    """Every row of the person's memories, whole, without those of the memories named."""
    rows: set[tuple[Any, ...]] = set()
    for name in OWNED:
        model = apps.get_model("memory", name)
        fields = [
            field.attname
            for field in model._meta.concrete_fields
            if field.attname not in ("embedding", "search_vector", "updated_at")
        ]
        for values in model.objects.for_user(user).values_list(*fields):
            if not but & set(values):
                rows.add((name, *values))
    return rows


def some_graph(user: User, chance: random.Random) -> list[Memory]:
    """Eight memories with all that can hang on them, by chance."""
    now = timezone.now()
    rows = [MemoryFactory(user=user, text=f"{name} is a friend of Alice.") for name in NAMES]
    for _ in range(20):
        one, other = chance.sample(rows, 2)
        if not MemoryLink.objects.for_user(user).filter(source=one, target=other).exists():
            link(one, other, chance.choice(list(MemoryLink.Type)), reasoning="Because.")
    messages = [uuid4() for _ in range(4)]
    for row in rows:
        for message in chance.sample(messages, chance.randint(0, 3)):
            source_of(row, f"About {row.short_id}.", message)
        MemoryAccess.objects.create(
            user=user, memory=row, segment_id=messages[0],
            kind=chance.choice(["used", "surfaced"]), use_day=1, accessed_at=now,
        )  # fmt: skip
        if chance.random() < 0.5:
            Annotation.objects.create(
                user=user, memory=row, text="A note.", author="person", created_at=now
            )
    return rows


@pytest.mark.parametrize("seed", range(6))
def test_undoing_restores_every_row_whatever_hung_together(as_alice: User, seed: int) -> None:
    chance = random.Random(seed)
    rows = some_graph(as_alice, chance)
    before = everything(as_alice, set())
    made: list[Merge] = []
    for _ in range(3):
        live = list(Memory.objects.for_user(as_alice).live().order_by("id"))
        chosen = chance.sample(live, min(len(live), chance.randint(2, 3)))
        text = " ".join(row.text for row in chosen)
        made.append(merge(as_alice, chosen, text))
        assert not details.lost([row.text for row in chosen], result_of(made[-1]).text)
    for one in reversed(made):
        services.undo_merge(user=as_alice, merge_id=one.id)
    assert everything(as_alice, {one.result_id for one in made}) == before
    assert {row.id for row in rows} == set(
        Memory.objects.for_user(as_alice).live().values_list("id", flat=True)
    )


@pytest.mark.django_db(transaction=True)
def test_of_two_merges_that_want_one_memory_one_is_done(as_alice: User) -> None:
    one, other = pair(as_alice)
    crew = MemoryFactory(user=as_alice, text="Alice sails with Berta.")
    whole = "Alice's boat is called Merula; she sails with Berta."
    results = at_once(
        as_alice,
        lambda: merge(as_alice, [one, other]),
        lambda: merge(as_alice, [one, crew], whole),
    )
    done = [result for result in results if isinstance(result, Merge)]
    refused = [result for result in results if isinstance(result, errors.Conflict)]
    assert (len(done), len(refused)) == (1, 1)
    assert MergeSource.objects.for_user(as_alice).filter(memory=one).count() == 1
    assert Memory.objects.for_user(as_alice).live().count() == 2
