"""Chains of causes and consequences over the links."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from uuid import uuid4

import pytest
from django.utils import timezone

from memory import causality, links, selectors, services
from memory.models import Memory, MemoryLink
from mira_site.errors import BadRequest, NotFound
from tests.factories import MemoryFactory

NOW = timezone.now()


def told(user, text, *, days_ago=1.0, **given):
    when = NOW - timedelta(days=days_ago)
    return MemoryFactory(user=user, text=text, created_at=when, said_at=when, **given)


def connect(user, source, target, link_type="because"):
    return links.connect(
        user, source.id, target.id, link_type=link_type, reasoning="", author="rule", at=NOW
    )


def chain(user, memory, **given):
    return selectors.causal_chain(user, memory.id, now=timezone.now(), **given)


def ids(nodes):
    return [node.id for node in nodes]


class TestDirection:
    @pytest.mark.parametrize(
        ("link_type", "cause"),
        [
            ("because", "target"),
            ("triggered", "source"),
            ("resolves", "target"),
            ("supersedes", "target"),
        ],
    )
    def test_each_relation_has_its_cause_at_one_end(self, as_alice, link_type, cause):
        source, target = told(as_alice, "The source."), told(as_alice, "The target.")
        connect(as_alice, source, target, link_type)
        upstream, downstream = (target, source) if cause == "target" else (source, target)
        assert ids(chain(as_alice, downstream).causes) == [upstream.id]
        assert ids(chain(as_alice, upstream, include_consequences=True).consequences) == [
            downstream.id
        ]
        assert chain(as_alice, upstream).causes == ()

    @pytest.mark.parametrize("is_source_older", [True, False])
    def test_of_a_contradiction_the_older_is_the_cause(self, as_alice, is_source_older):
        older = told(as_alice, "It was the butler.", days_ago=9)
        newer = told(as_alice, "It was the gardener.", days_ago=2)
        ends = (older, newer) if is_source_older else (newer, older)
        connect(as_alice, *ends, "conflicts")
        assert ids(chain(as_alice, newer).causes) == [older.id]
        assert chain(as_alice, older).causes == ()
        assert ids(chain(as_alice, older, include_consequences=True).consequences) == [newer.id]

    def test_every_type_of_link_is_causal_or_is_not(self):
        assert set(causality.CAUSE_END) < set(MemoryLink.Type.values)

    def test_what_is_not_causal_is_in_no_chain(self, as_alice):
        one, two = told(as_alice, "One."), told(as_alice, "Two.")
        for kind in set(MemoryLink.Type.values) - set(causality.CAUSAL):
            connect(as_alice, one, two, kind)
            found = chain(as_alice, one, include_consequences=True)
            assert (found.causes, found.consequences) == ((), ())


class TestChain:
    def row(self, user, count):
        """Memories of which each is so because of the next."""
        made = [told(user, f"Step {number}.") for number in range(count)]
        for effect, cause in pairwise(made):
            connect(user, effect, cause)
        return made

    def test_a_chain_goes_link_by_link(self, as_alice):
        made = self.row(as_alice, 4)
        found = chain(as_alice, made[0])
        assert ids(found.causes) == ids(made[1:])
        assert [node.depth for node in found.causes] == [1, 2, 3]
        assert [node.via_id for node in found.causes] == ids(made[:3])
        first = found.causes[0]
        assert (first.relation, first.weight, first.text) == ("because", 0.7, "Step 1.")
        assert found.consequences == ()

    def test_it_ends_at_the_depth_asked_for_and_at_five_unasked(self, as_alice):
        made = self.row(as_alice, 13)
        assert len(chain(as_alice, made[0]).causes) == 5
        assert len(chain(as_alice, made[0], max_depth=1).causes) == 1
        assert len(chain(as_alice, made[0], max_depth=10).causes) == 10

    @pytest.mark.parametrize("depth", [0, -1, 11])
    def test_a_depth_that_is_none_is_refused_by_name(self, as_alice, depth):
        memory = told(as_alice, "One.")
        with pytest.raises(BadRequest) as refused:
            chain(as_alice, memory, max_depth=depth)
        assert "max_depth" in refused.value.fields

    def test_a_circle_ends_and_leaves_the_start_out(self, as_alice):
        one, two, three = (told(as_alice, text) for text in ("One.", "Two.", "Three."))
        for effect, cause in ((one, two), (two, three), (three, one), (two, one)):
            connect(as_alice, effect, cause)
        found = chain(as_alice, one, max_depth=10, include_consequences=True)
        assert ids(found.causes) == [two.id, three.id]
        assert set(ids(found.consequences)) == {two.id, three.id}

    def test_what_is_reached_twice_is_told_once_by_the_shortest_and_surest_way(self, as_alice):
        start, left, right, deep = (told(as_alice, text) for text in ("S.", "L.", "R.", "D."))
        for effect, cause in ((start, left), (start, right), (left, deep), (right, deep)):
            connect(as_alice, effect, cause)
        MemoryLink.objects.filter(source=right, target=deep).update(weight=0.9)
        MemoryLink.objects.filter(source=start, target=right).update(weight=0.95)
        found = chain(as_alice, start)
        assert ids(found.causes) == [right.id, left.id, deep.id]
        assert found.causes[-1].via_id == right.id

    def test_a_wide_net_is_cut_at_two_hundred(self, as_alice):
        start = told(as_alice, "The start.")
        vector = start.embedding
        causes = [told(as_alice, f"Cause {number}.", embedding=vector) for number in range(205)]
        MemoryLink.objects.bulk_create(
            MemoryLink(
                user=as_alice,
                source=start,
                target=cause,
                link_type="because",
                author="rule",
                created_at=NOW,
            )
            for cause in causes
        )
        assert len(chain(as_alice, start).causes) == 200

    def test_it_costs_a_statement_a_level(self, as_alice, django_assert_max_num_queries):
        made = self.row(as_alice, 4)
        with django_assert_max_num_queries(1 + 4 + 1):
            chain(as_alice, made[0], include_consequences=True)

    def test_what_is_past_is_told_as_past(self, as_alice):
        made = self.row(as_alice, 2)
        Memory.objects.filter(id=made[1].id).update(valid_until=NOW - timedelta(hours=1))
        (cause,) = chain(as_alice, made[0]).causes
        assert cause.is_past

    @pytest.mark.parametrize("field", ["archived_at", "muted_at", "quarantined_at"])
    def test_what_may_not_come_up_is_neither_told_nor_passed_through(self, as_alice, field):
        made = self.row(as_alice, 3)
        Memory.objects.filter(id=made[1].id).update(**{field: NOW})
        assert chain(as_alice, made[0]).causes == ()

    def test_an_unknown_memory_is_not_found(self, as_alice):
        with pytest.raises(NotFound):
            selectors.causal_chain(as_alice, uuid4(), now=NOW)

    def test_nobody_sees_the_chain_of_somebody_else(self, alice, bob, acting):
        with acting(alice):
            effect, _ = self.row(alice, 2)
        with acting(bob), pytest.raises(NotFound):
            chain(bob, effect)

    def test_what_is_forgotten_takes_its_links_along(self, as_alice):
        made = self.row(as_alice, 3)
        services.forget(user=as_alice, memory_id=made[1].id)
        assert chain(as_alice, made[0]).causes == ()
        assert not MemoryLink.objects.for_user(as_alice).exists()
