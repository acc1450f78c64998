from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from uuid import uuid4

import pytest
from django.utils import timezone

from memory import entities, links, services
from memory.models import Entity, Memory, MemoryLink
from memory.naming import Named
from mira_site.errors import BadRequest, NotFound
from tests.factories import MemoryFactory

NOW = timezone.now()


def connect(user, source, target, link_type="refines", **given):
    options = {"reasoning": "It says more.", "author": "person", "at": NOW, **given}
    return links.connect(user, source.id, target.id, link_type=link_type, **options)


def chain(user, count):
    """Memories in a row, each linked to the next."""
    row = [MemoryFactory(user=user) for _ in range(count)]
    for one, two in pairwise(row):
        connect(user, one, two)
    return row


def hops(user, memory, depth):
    found = links.traverse(user, [memory.id], depth=depth, now=timezone.now())
    return {linked.memory_id: linked.depth for linked in found}


class TestConnect:
    def test_a_second_write_replaces_the_first(self, as_alice):
        one, two = MemoryFactory(user=as_alice), MemoryFactory(user=as_alice)
        first = connect(as_alice, one, two, bond="of the boat")
        second = connect(as_alice, one, two, "supersedes", reasoning="It is newer.")
        assert second.id == first.id
        (link,) = MemoryLink.objects.for_user(as_alice)
        assert (link.link_type, link.reasoning, link.bond) == ("supersedes", "It is newer.", "")

    def test_the_other_direction_is_another_link(self, as_alice):
        one, two = MemoryFactory(user=as_alice), MemoryFactory(user=as_alice)
        connect(as_alice, one, two)
        connect(as_alice, two, one)
        assert MemoryLink.objects.for_user(as_alice).count() == 2

    @pytest.mark.parametrize(
        ("given", "field"),
        [({"reasoning": " why "}, "reasoning"), ({"link_type": "causes"}, "link_type")],
    )
    def test_what_does_not_fit_is_refused(self, as_alice, given, field):
        one, two = MemoryFactory(user=as_alice), MemoryFactory(user=as_alice)
        with pytest.raises(BadRequest) as refused:
            connect(as_alice, one, two, **given)
        assert field in refused.value.fields

    def test_a_rule_need_not_say_why(self, as_alice):
        one, two = MemoryFactory(user=as_alice), MemoryFactory(user=as_alice)
        assert connect(as_alice, one, two, reasoning="", author="rule").reasoning == ""

    def test_no_memory_is_linked_to_itself(self, as_alice):
        one = MemoryFactory(user=as_alice)
        with pytest.raises(BadRequest):
            connect(as_alice, one, one)

    def test_an_archived_or_unknown_end_is_not_found(self, as_alice):
        one, two = MemoryFactory(user=as_alice), MemoryFactory(user=as_alice)
        services.archive(user=as_alice, memory_id=two.id, reason="old")
        with pytest.raises(NotFound):
            connect(as_alice, one, two)
        two.id = uuid4()
        with pytest.raises(NotFound):
            connect(as_alice, one, two)

    def test_somebody_elses_memory_is_not_found(self, alice, bob, acting):
        with acting(bob):
            theirs = MemoryFactory(user=bob)
        with acting(alice):
            mine = MemoryFactory(user=alice)
            for source, target in ((mine, theirs), (theirs, mine)):
                with pytest.raises(NotFound):
                    connect(alice, source, target)

    def test_a_link_taken_away_is_gone_and_not_found_again(self, as_alice):
        one, two = chain(as_alice, 2)
        links.disconnect(as_alice, one.id, two.id)
        assert hops(as_alice, one, 3) == {}
        with pytest.raises(NotFound):
            links.disconnect(as_alice, one.id, two.id)

    def test_forgetting_a_memory_takes_its_links_along(self, as_alice):
        one, two = chain(as_alice, 2)
        one.delete()
        assert MemoryLink.objects.for_user(as_alice).count() == 0
        assert hops(as_alice, two, 3) == {}


class TestTraverse:
    @pytest.mark.parametrize("depth", [0, 1, 2, 3, 4])
    def test_depth_is_a_number_of_hops(self, as_alice, depth):
        row = chain(as_alice, 5)
        expected = {row[hop].id: hop for hop in range(1, depth + 1)}
        assert hops(as_alice, row[0], depth) == expected

    def test_links_are_followed_in_both_directions(self, as_alice):
        row = chain(as_alice, 5)
        expected = {row[0].id: 2, row[1].id: 1, row[3].id: 1, row[4].id: 2}
        assert hops(as_alice, row[2], 2) == expected

    def test_it_says_how_each_was_reached(self, as_alice):
        one, two, three = chain(as_alice, 3)
        found = links.traverse(as_alice, [three.id], depth=2, now=timezone.now())
        way = {linked.memory_id: (linked.from_id, linked.outward) for linked in found}
        assert way == {two.id: (three.id, False), one.id: (two.id, False)}

    def test_a_ring_ends_and_the_shortest_way_counts(self, as_alice):
        row = chain(as_alice, 4)
        connect(as_alice, row[3], row[0])
        assert hops(as_alice, row[0], 9) == {row[1].id: 1, row[3].id: 1, row[2].id: 2}

    def test_what_is_archived_is_neither_given_nor_walked_through(self, as_alice):
        row = chain(as_alice, 4)
        services.archive(user=as_alice, memory_id=row[2].id, reason="old")
        assert hops(as_alice, row[0], 5) == {row[1].id: 1}

    @pytest.mark.parametrize("field", ["quarantined_at", "muted_at", "expires_at", "valid_until"])
    def test_one_rule_of_visibility_holds(self, as_alice, field):
        row = chain(as_alice, 3)
        over = timezone.now() - timedelta(days=1)
        Memory.objects.for_user(as_alice).filter(id=row[1].id).update(**{field: over})
        assert hops(as_alice, row[0], 3) == {}

    def test_what_is_past_is_walked_when_asked_for(self, as_alice):
        row = chain(as_alice, 3)
        over = timezone.now() - timedelta(days=1)
        Memory.objects.for_user(as_alice).filter(id=row[1].id).update(valid_until=over)
        found = links.traverse(as_alice, [row[0].id], depth=3, now=timezone.now(), past=True)
        assert {linked.memory_id for linked in found} == {row[1].id, row[2].id}

    def test_it_is_one_statement_even_in_a_dense_net(self, as_alice, django_assert_num_queries):
        net = [MemoryFactory(user=as_alice) for _ in range(14)]
        MemoryLink.objects.bulk_create(
            MemoryLink(
                user=as_alice, source=one, target=two, link_type="refines", author="rule",
                created_at=NOW,
            )
            for one in net for two in net if one is not two
        )  # fmt: skip
        with django_assert_num_queries(1):
            assert set(hops(as_alice, net[0], 6).values()) == {1}

    def test_scores_weigh_the_type_and_both_importances(self, as_alice):
        main = MemoryFactory(user=as_alice)
        grave, light = MemoryFactory(user=as_alice), MemoryFactory(user=as_alice)
        connect(as_alice, main, grave, "conflicts")
        connect(as_alice, main, light, "precedes")
        Memory.objects.for_user(as_alice).update(importance=0.9)
        Memory.objects.for_user(as_alice).filter(id=main.id).update(importance=0.5)
        found = links.traverse(as_alice, [main.id], depth=1, now=timezone.now())
        assert [linked.memory_id for linked in found] == [grave.id, light.id]
        assert [linked.score for linked in found] == pytest.approx(
            [1.0 * (0.7 * 0.9 + 0.3 * 0.5), 0.7 * (0.7 * 0.9 + 0.3 * 0.5)]
        )

    def test_two_are_shown_beside_each_no_primary_and_each_once(self, as_alice):
        one, two = MemoryFactory(user=as_alice), MemoryFactory(user=as_alice)
        others = [MemoryFactory(user=as_alice) for _ in range(4)]
        connect(as_alice, one, two)
        for other in others:
            connect(as_alice, one, other)
            connect(as_alice, other, two)
        shown = links.beside(as_alice, [one.id, two.id], now=timezone.now())
        ids = [linked.memory_id for found in shown.values() for linked in found]
        assert {len(found) for found in shown.values()} == {2}
        assert len(ids) == 4
        assert set(ids) == {other.id for other in others}

    def test_nothing_of_somebody_else_is_reached(self, alice, bob, acting):
        with acting(bob):
            theirs = chain(bob, 3)
        with acting(alice):
            assert hops(alice, theirs[0], 3) == {}
        with acting(bob):
            assert hops(alice, theirs[0], 3) == {}


@pytest.mark.usefixtures("embedder")
class TestHints:
    def hinted(self, user, *memories):
        found = links.hints(user, [memory.id for memory in memories], now=timezone.now())
        return {
            memory: {hint.memory_id: hint.signal for hint in hints}
            for memory, hints in found.items()
        }

    def test_a_near_memory_is_hinted_at_by_its_vector(self, as_alice):
        new = MemoryFactory(user=as_alice, text="Alice keeps her sailing boat in Kiel.")
        near = MemoryFactory(user=as_alice, text="Alice has a sailing boat in the port of Kiel.")
        MemoryFactory(user=as_alice, text="The dentist is called Dr. Weber.")
        assert self.hinted(as_alice, new) == {new.id: {near.id: "vector"}}

    def test_a_shared_name_is_an_axis_whatever_it_is_called(self, as_alice):
        new = MemoryFactory(user=as_alice, text="Jana works as a nurse in the children's ward.")
        other = MemoryFactory(user=as_alice, text="J. Novak works in a hospital for sick kids.")
        far = MemoryFactory(user=as_alice, text="The Danube rises when snow melts.")
        names = {new.id: "Jana", other.id: "J. Novak", far.id: "Jana"}
        named = {memory: [Named(name=name, entity_type="person")] for memory, name in names.items()}
        entities.attach(as_alice, named, at=NOW)
        assert self.hinted(as_alice, new) == {new.id: {}}
        jana = Entity.objects.for_user(as_alice).get(name="Jana")
        novak = Entity.objects.for_user(as_alice).get(name="J. Novak")
        entities.merge(user=as_alice, ids=[novak.id], into=jana.id, at=NOW)
        assert self.hinted(as_alice, new) == {new.id: {other.id: "entity"}}

    def test_rare_words_are_an_axis_even_among_two_memories(self, as_alice):
        new = MemoryFactory(user=as_alice, text="Invoice XR4711 is paid.")
        other = MemoryFactory(user=as_alice, text="XR4711 is in the kitchen.")
        assert self.hinted(as_alice, new) == {new.id: {other.id: "words"}}

    def test_a_lone_memory_has_no_hints(self, as_alice):
        only = MemoryFactory(user=as_alice)
        assert self.hinted(as_alice, only) == {only.id: {}}
        assert links.hints(as_alice, [], now=timezone.now()) == {}

    def test_a_broken_axis_takes_nothing_from_the_others(self, as_alice, monkeypatch):
        new = MemoryFactory(user=as_alice, text="Alice keeps her sailing boat in Kiel.")
        near = MemoryFactory(user=as_alice, text="Alice has a sailing boat in the port of Kiel.")
        broken = [
            (signal, "SELECT 1/0" if signal == "vector" else statement)
            for signal, statement in links._AXES
        ]
        monkeypatch.setattr(links, "_AXES", tuple(broken))
        assert self.hinted(as_alice, new) == {new.id: {near.id: "words"}}

    def test_what_is_linked_or_archived_is_no_candidate(self, as_alice):
        new, linked, gone = (
            MemoryFactory(user=as_alice, text=f"Alice keeps her sailing boat in Kiel, {n}.")
            for n in ("summer", "winter", "spring")
        )
        connect(as_alice, linked, new)
        services.archive(user=as_alice, memory_id=gone.id, reason="old")
        assert self.hinted(as_alice, new) == {new.id: {}}

    def test_statements_do_not_grow_with_the_memories(self, as_alice, django_assert_num_queries):
        new = [MemoryFactory(user=as_alice, text=f"Alice saw ship {n} in Kiel.") for n in range(6)]
        with django_assert_num_queries(9):  # three axes, each in a savepoint
            self.hinted(as_alice, *new)

    def test_somebody_elses_memories_are_no_candidates(self, alice, bob, acting):
        with acting(bob):
            MemoryFactory(user=bob, text="Alice keeps her sailing boat in Kiel.")
        with acting(alice):
            mine = MemoryFactory(user=alice, text="Alice keeps her sailing boat in Kiel!")
            assert self.hinted(alice, mine) == {mine.id: {}}
