from __future__ import annotations

import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory import entities, entity_merging, likeness, mentions, near_names, services, upkeep
from memory.models import Entity, EntityKey, EntityMergeProposal, Memory, MemoryEntity, Work
from memory.naming import Named
from mira_site import embeddings, isolation
from mira_site.accounts.models import UseDay
from mira_site.errors import BadRequest, Conflict, NotFound, WorkLeftDue
from tests.factories import MemoryFactory

NOW = timezone.now()
PERSON = "person"


def named(user, *names, kind=PERSON):
    """Entities of these names, each mentioned by a memory of its own."""
    made = []
    for name in names:
        memory = MemoryFactory(user=user, text=f"Note {uuid4()} on {name}.")
        entities.attach(user, {memory.id: [Named(name=name, entity_type=kind)]}, at=NOW)
        made.append(Entity.objects.for_user(user).get(memory_links__memory=memory))
    return made


def snapshot(user):
    rows = Entity.objects.for_user(user).values_list(
        "id", "name", "merged_into", "canonical", "merged_at", "merged_by", "archived_at"
    )
    links = MemoryEntity.objects.for_user(user).values_list("memory_id", "entity_id")
    return set(rows), set(links)


def memory_of(entity):
    return entity.memory_links.get().memory


class TestAttach:
    def test_one_name_is_one_entity_however_it_is_spelt(self, as_alice):
        first, second = named(as_alice, "Jana Novák", "jana  novak")
        assert first.id == second.id
        assert first.name == "Jana Novák"

    def test_near_names_are_never_one(self, as_alice):
        named(as_alice, "Anna", "Annika", "Jan", "Jana", "Dr. Jana Novak", "Jana Novak")
        assert Entity.objects.for_user(as_alice).filter(merged_into__isnull=True).count() == 6

    def test_kinds_that_fit_share_an_entity_and_others_do_not(self, as_alice):
        (company,) = named(as_alice, "Spotify", kind="organisation")
        (app,) = named(as_alice, "Spotify", kind="product")
        (person,) = named(as_alice, "Paris")
        (city,) = named(as_alice, "Paris", kind="place")
        assert company.id == app.id
        assert person.id != city.id

    def test_an_unknown_kind_takes_the_first_that_is_known(self, as_alice):
        (entity,) = named(as_alice, "Merula", kind="boat")
        assert entity.entity_type == "other"
        named(as_alice, "Merula", kind="product")
        entity.refresh_from_db()
        assert entity.entity_type == "product"

    def test_an_unknown_kind_and_two_known_ones_in_one_go(self, as_alice):
        (old,) = named(as_alice, "Paris", kind="other")
        kinds = {MemoryFactory(user=as_alice).id: kind for kind in ("place", PERSON, "other")}
        wanted = {id_: [Named(name="Paris", entity_type=kind)] for id_, kind in kinds.items()}
        for _ in range(2):
            entities.attach(as_alice, wanted, at=NOW)
        found = Entity.objects.for_user(as_alice).filter(normalised="paris")
        assert sorted(found.values_list("entity_type", flat=True)) == [PERSON, "place"]
        assert old.id in set(found.values_list("id", flat=True))

    def test_the_persons_own_name_is_no_entity(self, as_alice):
        memory = MemoryFactory(user=as_alice)
        entities.attach(as_alice, {memory.id: [Named(name="Alice"), Named(name="Rex")]}, at=NOW)
        assert [one.name for one in Entity.objects.for_user(as_alice)] == ["Rex"]

    def test_attaching_twice_changes_nothing(self, as_alice):
        memory = MemoryFactory(user=as_alice)
        for _ in range(2):
            entities.attach(as_alice, {memory.id: [Named(name="Rex"), Named(name="rex")]}, at=NOW)
        assert MemoryEntity.objects.for_user(as_alice).count() == 1

    def test_statements_do_not_grow_with_the_memories(
        self, as_alice, django_assert_max_num_queries
    ):
        memories = [MemoryFactory(user=as_alice) for _ in range(8)]
        wanted = {
            memory.id: [Named(name=f"Ship {n}"), Named(name=f"Port {n}")]
            for n, memory in enumerate(memories)
        }
        with django_assert_max_num_queries(12):
            entities.attach(as_alice, wanted, at=NOW)

    @pytest.mark.usefixtures("embedder")
    def test_what_a_person_writes_down_is_read_for_names(self, as_alice):
        memory = services.create(user=as_alice, text="My sister Jana lives in Prague.")
        names = Entity.objects.for_user(as_alice).filter(memory_links__memory=memory)
        assert {one.name for one in names} == {"Jana", "Prague"}

    @pytest.mark.usefixtures("embedder")
    def test_a_segment_is_read_for_names_without_a_model(self, as_alice, segment):
        segment.said("My boat is called Merula.")
        services.remember(
            user=as_alice, segment_id=segment.id, messages=segment.messages, at=segment.at
        )
        assert [one.name for one in Entity.objects.for_user(as_alice)] == ["Merula"]

    @pytest.mark.parametrize(
        ("given", "kinds"),
        [
            ([{"name": "Merula", "type": "product"}], {"Merula": "product"}),
            ([{"name": "Merula", "type": "BOAT"}, "Rex"], {"Merula": "other", "Rex": "other"}),
            ([{"title": "x"}, 7, {"name": 3}, {"name": " . "}], {}),
            ([], {}),
            ("nonsense", {"Merula": "other"}),
            (None, {"Merula": "other"}),
        ],
    )
    @pytest.mark.usefixtures("embedder")
    def test_a_model_names_them_and_what_is_malformed_is_dropped(
        self, as_alice, segment, fake_anthropic, given, kinds
    ):
        segment.said("My boat is called Merula.")
        memory = {"text": "Her boat is called Merula.", "messages": [1], "entities": given}
        fake_anthropic.on("extraction").answers({"memories": [memory]})
        done = services.remember(
            user=as_alice, segment_id=segment.id, messages=segment.messages, at=segment.at
        )
        assert done.by_model
        found = Entity.objects.for_user(as_alice)
        assert dict(found.values_list("name", "entity_type")) == kinds

    @pytest.mark.usefixtures("embedder")
    def test_an_edit_lets_go_of_names_that_are_gone(self, as_alice):
        memory = services.create(user=as_alice, text="My sister Jana lives in Prague.")
        services.edit(user=as_alice, memory_id=memory.id, text="My sister Jana lives in Vienna.")
        names = Entity.objects.for_user(as_alice).filter(memory_links__memory=memory)
        assert {one.name for one in names} == {"Jana", "Vienna"}

    def test_the_frame_of_a_quoted_memory_is_not_read(self, as_alice):
        memory = MemoryFactory(user=as_alice, text="Bob said: “My boat is called Merula.”")
        found = mentions.spotted(as_alice, {memory.id: memory.text})
        assert [one.name for one in found[memory.id]] == ["Merula"]

    def test_names_of_two_people_do_not_meet(self, alice, bob, acting):
        with acting(bob):
            named(bob, "Jana Novak")
        with acting(alice):
            named(alice, "Jana Novak", "Dr. Jana Novak")
            assert Entity.objects.for_user(alice).count() == 2
            assert EntityMergeProposal.objects.for_user(alice).count() == 1
        with acting(bob):
            assert EntityMergeProposal.objects.for_user(bob).count() == 0


class TestProposals:
    def test_near_names_become_a_question(self, as_alice):
        named(as_alice, "Jana Novak", "Dr. Jana Novak", "Anna", "Annika")
        (proposal,) = EntityMergeProposal.objects.for_user(as_alice)
        assert {proposal.first.name, proposal.second.name} == {"Jana Novak", "Dr. Jana Novak"}
        assert proposal.status == "open"

    def test_yes_merges_under_the_fuller_name(self, as_alice):
        short, full = named(as_alice, "IBM", "International Business Machines", kind="organisation")
        (proposal,) = EntityMergeProposal.objects.for_user(as_alice)
        decided = entities.decide(user=as_alice, proposal_id=proposal.id, same=True, at=NOW)
        assert (decided.status, decided.decided_by) == ("merged", PERSON)
        short.refresh_from_db()
        assert short.canonical_id == full.id

    def test_no_is_kept_and_not_asked_again(self, as_alice):
        one, two = named(as_alice, "Dr. Jana Novak", "Jana Novak")
        (proposal,) = EntityMergeProposal.objects.for_user(as_alice)
        entities.decide(user=as_alice, proposal_id=proposal.id, same=False, at=NOW)
        near_names.propose(as_alice, [one, two], at=NOW)
        entities.decide(user=as_alice, proposal_id=proposal.id, same=True, at=NOW)
        assert EntityMergeProposal.objects.for_user(as_alice).get().status == "refused"

    def test_a_question_answered_by_a_merge_is_closed(self, as_alice):
        one, two = named(as_alice, "Dr. Jana Novak", "Jana Novak")
        entities.merge(user=as_alice, ids=[one.id], into=two.id, at=NOW)
        assert EntityMergeProposal.objects.for_user(as_alice).get().status == "merged"

    def test_only_one_of_the_two_can_be_the_name(self, as_alice):
        named(as_alice, "Dr. Jana Novak", "Jana Novak")
        (other,) = named(as_alice, "Rex")
        (proposal,) = EntityMergeProposal.objects.for_user(as_alice)
        with pytest.raises(BadRequest):
            entities.decide(
                user=as_alice, proposal_id=proposal.id, same=True, at=NOW, into=other.id
            )

    def test_somebody_elses_question_is_not_found(self, alice, bob, acting):
        with acting(bob):
            named(bob, "Dr. Jana Novak", "Jana Novak")
            proposal = EntityMergeProposal.objects.for_user(bob).get()
        with acting(alice), pytest.raises(NotFound):
            entities.decide(user=alice, proposal_id=proposal.id, same=True, at=NOW)


class TestMerge:
    def test_merging_turns_pointers_and_moves_no_mention(self, as_alice):
        one, two = named(as_alice, "Rex", "Rexy")
        _, links = snapshot(as_alice)
        merged = entities.merge(user=as_alice, ids=[two.id], into=one.id, at=NOW)
        assert (merged.root.id, merged.moved) == (one.id, (two.id,))
        assert snapshot(as_alice)[1] == links

    def test_merging_twice_changes_nothing(self, as_alice):
        one, two = named(as_alice, "Rex", "Rexy")
        entities.merge(user=as_alice, ids=[two.id], into=one.id, at=NOW)
        before = snapshot(as_alice)
        for ids, into in (([two.id], one.id), ([one.id], two.id), ([one.id], one.id)):
            assert entities.merge(user=as_alice, ids=ids, into=into, at=NOW).moved == ()
        assert snapshot(as_alice) == before

    def test_a_root_brings_its_names_and_takes_them_back(self, as_alice):
        a, b, c = named(as_alice, "Rex", "Rexy", "The Dog")
        entities.merge(user=as_alice, ids=[b.id], into=a.id, at=NOW)
        before = snapshot(as_alice)
        entities.merge(user=as_alice, ids=[b.id], into=c.id, at=NOW)
        assert set(Entity.objects.for_user(as_alice).filter(canonical=c)) == {a, b}
        entities.unmerge(user=as_alice, entity_id=a.id, at=NOW)
        assert snapshot(as_alice) == before

    @settings(
        max_examples=25,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(pairs=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=9))
    def test_unmerging_in_reverse_restores_every_state(self, as_alice, pairs):
        if not Entity.objects.for_user(as_alice).exists():
            named(as_alice, *(f"Name {letter}" for letter in "ABCDEF"))
        all_ = list(Entity.objects.for_user(as_alice).order_by("name"))
        states, moved = [snapshot(as_alice)], []
        for one, two in pairs:
            merged = entities.merge(user=as_alice, ids=[all_[one].id], into=all_[two].id, at=NOW)
            moved.append(merged.moved)
            states.append(snapshot(as_alice))
        for before, names in zip(reversed(states[:-1]), reversed(moved), strict=True):
            for entity_id in names:
                entities.unmerge(user=as_alice, entity_id=entity_id, at=NOW)
            assert snapshot(as_alice) == before

    def test_what_was_separated_is_not_asked_about_again(self, as_alice):
        one, two = named(as_alice, "Dr. Jana Novak", "Jana Novak")
        entities.merge(user=as_alice, ids=[one.id], into=two.id, at=NOW)
        entities.unmerge(user=as_alice, entity_id=one.id, at=NOW)
        near_names.propose(as_alice, [one, two], at=NOW)
        assert EntityMergeProposal.objects.for_user(as_alice).get().status == "refused"

    def test_unmerging_a_root_changes_nothing(self, as_alice):
        (one,) = named(as_alice, "Rex")
        before = snapshot(as_alice)
        entities.unmerge(user=as_alice, entity_id=one.id, at=NOW)
        assert snapshot(as_alice) == before

    def test_kinds_that_do_not_fit_are_refused_and_nothing_changes(self, as_alice):
        (person,) = named(as_alice, "Paris")
        (city,) = named(as_alice, "Paris", kind="place")
        (dog,) = named(as_alice, "Rex")
        before = snapshot(as_alice)
        with pytest.raises(Conflict):
            entities.merge(user=as_alice, ids=[dog.id, city.id], into=person.id, at=NOW)
        assert snapshot(as_alice) == before

    def test_somebody_elses_entity_is_not_found(self, alice, bob, acting):
        with acting(bob):
            (theirs,) = named(bob, "Rex")
        with acting(alice):
            (mine,) = named(alice, "Rex")
            for ids, into in (([theirs.id], mine.id), ([mine.id], theirs.id)):
                with pytest.raises(NotFound):
                    entities.merge(user=alice, ids=ids, into=into, at=NOW)
            with pytest.raises(NotFound):
                entities.unmerge(user=alice, entity_id=theirs.id, at=NOW)
            with pytest.raises(NotFound):
                entities.forget(user=alice, entity_id=theirs.id)
            with pytest.raises(NotFound):
                entities.edit(user=alice, entity_id=theirs.id, at=NOW, name="Max")

    @pytest.mark.django_db(transaction=True)
    def test_two_merges_at_once_make_no_ring(self, alice):
        with isolation.acting_as(alice.pk):
            one, two, three = named(alice, "Rex", "Rexy", "Max")
        gate = threading.Barrier(3)
        orders = [(one.id, two.id), (two.id, one.id), (three.id, one.id)]

        def join(source, target):
            with isolation.acting_as(alice.pk):
                gate.wait()
                entities.merge(user=alice, ids=[source], into=target, at=NOW)
            connection.close()

        threads = [threading.Thread(target=join, args=order) for order in orders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with isolation.acting_as(alice.pk):
            (root,) = Entity.objects.for_user(alice).filter(merged_into__isnull=True)
            assert Entity.objects.for_user(alice).filter(canonical=root).count() == 2


class TestEditing:
    def test_the_earlier_name_goes_on_leading_to_it(self, as_alice):
        (dog,) = named(as_alice, "Rexx")
        entities.edit(user=as_alice, entity_id=dog.id, at=NOW, name="Rex")
        (again,) = named(as_alice, "Rexx")
        assert again.canonical_id == dog.id
        keys = EntityKey.objects.for_user(as_alice).filter(entity=dog)
        assert set(keys.values_list("key", flat=True)) == likeness.search_keys("Rex")

    def test_a_change_of_case_makes_no_second_name(self, as_alice):
        (dog,) = named(as_alice, "rex")
        entities.edit(user=as_alice, entity_id=dog.id, at=NOW, name="Rex", entity_type="other")
        (entity,) = Entity.objects.for_user(as_alice)
        assert (entity.name, entity.entity_type) == ("Rex", "other")

    def test_a_name_that_is_taken_is_refused(self, as_alice):
        dog, _ = named(as_alice, "Rex", "Max")
        with pytest.raises(Conflict):
            entities.edit(user=as_alice, entity_id=dog.id, at=NOW, name="max")

    @pytest.mark.parametrize("given", [{"name": " . "}, {"entity_type": "boat"}])
    def test_what_is_no_name_or_kind_is_refused(self, as_alice, given):
        (dog,) = named(as_alice, "Rex")
        with pytest.raises(BadRequest):
            entities.edit(user=as_alice, entity_id=dog.id, at=NOW, **given)

    def test_forgetting_takes_its_names_and_no_memory(self, as_alice):
        a, b, c, other = named(as_alice, "Rex", "Rexy", "The Dog", "Max")
        entities.merge(user=as_alice, ids=[b.id], into=a.id, at=NOW)
        entities.merge(user=as_alice, ids=[a.id], into=c.id, at=NOW)
        entities.forget(user=as_alice, entity_id=c.id)
        assert list(Entity.objects.for_user(as_alice)) == [other]
        assert Memory.objects.for_user(as_alice).count() == 4

    def test_an_account_with_merged_names_can_be_erased(self, alice, acting):
        with acting(alice):
            a, b, c = named(alice, "Rex", "Rexy", "The Dog")
            entities.merge(user=alice, ids=[b.id], into=a.id, at=NOW)
            entities.merge(user=alice, ids=[a.id], into=c.id, at=NOW)
            alice.delete()


@pytest.mark.usefixtures("embedder")
class TestHubs:
    def found(self, user, *names, limit=20, text="dog"):
        vector = embeddings.embed_one(text)
        hubs = entities.hub_memories(user, names, vector, limit=limit, now=timezone.now())
        return [hub.id for hub in hubs]

    def test_a_name_leads_to_what_mentions_it_nearest_first(self, as_alice):
        far, near = (
            MemoryFactory(user=as_alice, text=text)
            for text in ("Rex was born in Kiel.", "Rex is a big old dog.")
        )
        for memory in (far, near):
            entities.attach(as_alice, {memory.id: [Named(name="Rex")]}, at=NOW)
        MemoryFactory(user=as_alice, text="A dog barked.")
        assert self.found(as_alice, "rex") == [near.id, far.id]
        assert self.found(as_alice, "rex", limit=1) == [near.id]

    def test_a_name_leads_to_all_that_is_merged_with_it(self, as_alice):
        one, two = named(as_alice, "Rex", "The Hound")
        entities.merge(user=as_alice, ids=[one.id], into=two.id, at=NOW)
        assert len(self.found(as_alice, "Rex")) == 2
        assert len(self.found(as_alice, "hound")) == 2

    def test_a_given_name_finds_the_full_one_unless_it_is_a_name_itself(self, as_alice):
        full, _ = named(as_alice, "Jana Novak", "Anna")
        assert self.found(as_alice, "Jana") == [memory_of(full).id]
        (short,) = named(as_alice, "Jana")
        assert self.found(as_alice, "Jana") == [memory_of(short).id]
        assert self.found(as_alice, "Ann") == []

    def test_what_may_not_come_up_does_not(self, as_alice):
        named(as_alice, "Rex")
        Memory.objects.for_user(as_alice).update(muted_at=NOW)
        assert self.found(as_alice, "Rex") == []

    def test_five_hubs_and_fifteen_memories_of_each_in_one_statement(
        self, as_alice, django_assert_num_queries
    ):
        for n in range(7):
            for _ in range(3 if n else 17):
                memory = MemoryFactory(user=as_alice)
                entities.attach(as_alice, {memory.id: [Named(name=f"Ship {n}")]}, at=NOW)
        with django_assert_num_queries(1):
            found = self.found(as_alice, *(f"Ship {n}" for n in range(7)), limit=99)
        assert len(found) == 15 + 4 * 3

    def test_no_names_give_nothing(self, as_alice):
        assert self.found(as_alice) == self.found(as_alice, "", ".") == []

    def test_somebody_elses_names_lead_nowhere(self, alice, bob, acting):
        with acting(bob):
            named(bob, "Rex")
        with acting(alice):
            assert self.found(alice, "Rex") == []


def aged(user, use_days):
    """What is archived when the person has talked on so many days."""
    UseDay.objects.bulk_create(
        UseDay(user=user, day_on=(NOW - timedelta(days=n)).date(), first_message_at=NOW)
        for n in range(use_days)
    )
    return entities.collect_garbage(user, at=NOW)


class TestGarbage:
    def test_a_name_without_live_memories_is_archived_and_comes_back(self, as_alice):
        gone, kept = named(as_alice, "Rex", "Max")
        services.archive(user=as_alice, memory_id=memory_of(gone).id, reason="old")
        assert aged(as_alice, 46) == 1
        gone.refresh_from_db()
        kept.refresh_from_db()
        assert (gone.archived_at, kept.archived_at) == (NOW, None)
        (again,) = named(as_alice, "rex")
        assert (again.id, again.archived_at) == (gone.id, None)

    def test_an_absence_archives_nothing(self, as_alice):
        (gone,) = named(as_alice, "Rex")
        memory_of(gone).delete()
        assert aged(as_alice, 20) == 0

    def test_a_name_lives_as_long_as_what_it_is_a_name_of(self, as_alice):
        one, two = named(as_alice, "Rex", "The Dog")
        entities.merge(user=as_alice, ids=[one.id], into=two.id, at=NOW)
        memory_of(two).delete()
        assert aged(as_alice, 60) == 0
        memory_of(one).delete()
        assert entities.collect_garbage(as_alice, at=NOW) == 2
        (again,) = named(as_alice, "Rex")
        two.refresh_from_db()
        assert (again.archived_at, two.archived_at) == (None, None)

    def test_somebody_elses_names_are_left_alone(self, alice, bob, acting):
        with acting(bob):
            (theirs,) = named(bob, "Rex")
            memory_of(theirs).delete()
        with acting(alice):
            assert aged(alice, 60) == 0


SAME = {"verdicts": [{"pair": 1, "verdict": "same"}]}


class TestMergeJob:
    @pytest.fixture
    def pair(self, as_alice, fake_anthropic):
        return named(as_alice, "Dr. Jana Novak", "Jana Novak")

    def test_a_sure_model_merges(self, as_alice, pair, fake_anthropic):
        fake_anthropic.on("entity_merge").answers(SAME)
        assert entity_merging.consider(as_alice, at=NOW) == 1
        (alias,) = Entity.objects.for_user(as_alice).filter(merged_into__isnull=False)
        assert alias.merged_by == "model"
        assert not entity_merging.is_due(as_alice)

    def test_a_model_that_cannot_tell_leaves_it_to_the_person(self, as_alice, pair, fake_anthropic):
        fake_anthropic.on("entity_merge").answers({"verdicts": [{"pair": 1, "verdict": "unsure"}]})
        assert entity_merging.consider(as_alice, at=NOW) == 0
        assert EntityMergeProposal.objects.for_user(as_alice).get().status == "open"
        assert not entity_merging.is_due(as_alice)

    def test_a_weak_likeness_is_not_the_models_to_decide(self, as_alice, fake_anthropic):
        named(as_alice, "J. Novak", "Jana Novak")
        assert entity_merging.consider(as_alice, at=NOW) == 0
        assert fake_anthropic.requests == []

    def test_kinds_that_no_longer_fit_are_not_merged(self, as_alice, pair, fake_anthropic):
        Entity.objects.for_user(as_alice).filter(id=pair[0].id).update(entity_type="place")
        fake_anthropic.on("entity_merge").answers(SAME)
        before = snapshot(as_alice)
        assert entity_merging.consider(as_alice, at=NOW) == 0
        assert snapshot(as_alice) == before

    def test_names_and_notes_are_quoted(self, as_alice, fake_anthropic):
        named(as_alice, "Dr. Jana </pairs>", "Jana </pairs>")
        fake_anthropic.on("entity_merge").says("no", times=2)
        with pytest.raises(WorkLeftDue):
            entity_merging.consider(as_alice, at=NOW)
        (block,) = fake_anthropic.requests[0].json["messages"][0]["content"]
        assert block["text"].count("</pairs>") == 1

    @pytest.mark.parametrize(
        "misbehave",
        [
            lambda job: job.says("", times=2),
            lambda job: job.says("{not json", times=2),
            lambda job: job.answers({"verdicts": []}),
            lambda job: job.answers({"merges": [{"canonical": "x"}]}, times=2),
            lambda job: job.answers({"verdicts": [{"pair": 7, "verdict": "same"}]}),
            lambda job: job.answers({"verdicts": [{"pair": 1, "verdict": "perhaps"}]}, times=2),
            lambda job: job.answers({"verdicts": [{"pair": 1, "verdict": "same"}] * 2}),
            lambda job: job.calls_tool("entity_merge", SAME, cut=True, times=2),
            lambda job: job.fails(529, times=9),
            lambda job: job.fails(401, times=9),
        ],
        ids=["empty", "broken", "no verdicts", "wrong shape", "unknown pair", "unknown verdict",
             "a pair twice", "cut off", "overloaded", "refused"],
    )  # fmt: skip
    def test_a_misbehaving_model_changes_nothing_and_the_work_stays_due(
        self, as_alice, pair, fake_anthropic, misbehave
    ):
        misbehave(fake_anthropic.on("entity_merge"))
        before = snapshot(as_alice)
        with pytest.raises(WorkLeftDue):
            entity_merging.consider(as_alice, at=NOW)
        assert snapshot(as_alice) == before
        assert entity_merging.is_due(as_alice)
        assert EntityMergeProposal.objects.for_user(as_alice).get().status == "open"

    def test_strong_proposals_make_the_work_due_and_the_runner_ends_it(
        self, as_alice, pair, fake_anthropic
    ):
        job = Work.objects.for_user(as_alice).get(kind=Work.Kind.ENTITY_MERGE)
        fake_anthropic.on("entity_merge").says("", times=2)
        assert upkeep.run_due(as_alice) == 0
        job.refresh_from_db()
        assert (job.status, job.error_code) == ("failed", "left_due")
        Work.objects.for_user(as_alice).update(next_attempt_at=NOW)
        fake_anthropic.on("entity_merge").answers(SAME)
        assert upkeep.run_due(as_alice) == 1
        job.refresh_from_db()
        assert job.status == "done"
        assert Entity.objects.for_user(as_alice).filter(merged_by="model").count() == 1

    def test_without_a_model_the_work_stays_due(self, as_alice):
        named(as_alice, "Dr. Jana Novak", "Jana Novak")
        with pytest.raises(WorkLeftDue):
            entity_merging.consider(as_alice, at=NOW)
        assert entity_merging.is_due(as_alice)
