from __future__ import annotations

from itertools import pairwise
from uuid import uuid4

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from memory import entities, services
from memory.models import Entity, EntityMergeProposal, MemoryLink
from memory.naming import Named
from tests.factories import MemoryFactory

ROOT = "/api/v1/"
NOW = timezone.now()


@pytest.fixture
def world(alice, acting):
    """Memories of Alice's by the name each mentions."""

    def make(*names, kind="person"):
        made = {}
        with acting(alice):
            for name in names:
                memory = MemoryFactory(user=alice, text=f"Note {uuid4()} on {name}.")
                entities.attach(alice, {memory.id: [Named(name=name, entity_type=kind)]}, at=NOW)
                made[name] = memory
        return made

    return make


@pytest.fixture
def entity_of(alice, acting):
    def find(name):
        with acting(alice):
            return Entity.objects.for_user(alice).get(name=name)

    return find


def problem(response, status):
    assert response.status_code == status
    assert response.headers["Content-Type"] == "application/problem+json"
    return response.json()


class TestEntities:
    def test_the_list_has_roots_with_their_names_and_live_counts(
        self, api, alice, acting, world, entity_of
    ):
        memories = world("Rex", "Rexy", "Max")
        with acting(alice):
            services.archive(user=alice, memory_id=memories["Max"].id, reason="old")
            entities.merge(user=alice, ids=[entity_of("Rexy").id], into=entity_of("Rex").id, at=NOW)
        body = api.get(f"{ROOT}entities/").json()
        shown = {row["name"]: row for row in body["results"]}
        assert list(shown) == ["Max", "Rex"]
        assert shown["Max"]["memory_count"] == 0
        assert shown["Rex"]["memory_count"] == 2
        assert [name["name"] for name in shown["Rex"]["names"]] == ["Rexy"]
        assert body["next"] is None

    def test_it_is_searched_by_any_name_and_filtered_by_kind(self, api, alice, acting, world):
        world("Jana Novák", "Rex")
        world("Prague", kind="place")
        with acting(alice):
            jana = Entity.objects.for_user(alice).get(name="Jana Novák")
            entities.edit(user=alice, entity_id=jana.id, at=NOW, name="Mrs Weber")

        def names(**query):
            return [row["name"] for row in api.get(f"{ROOT}entities/", query).json()["results"]]

        assert names(q="novak") == ["Mrs Weber"]
        assert names(type="place") == ["Prague"]
        assert names(q="rex", type="place") == []
        problem(api.get(f"{ROOT}entities/", {"type": "boat"}), 400)

    def test_pages_follow_without_loss(self, api, world):
        world(*(f"Ship {n}" for n in range(7)))
        first = api.get(f"{ROOT}entities/", {"page_size": 4}).json()
        second = api.get(first["next"]).json()
        names = [row["name"] for row in first["results"] + second["results"]]
        assert names == [f"Ship {n}" for n in range(7)]

    def test_the_list_costs_the_same_whatever_its_length(
        self, api, world, django_assert_max_num_queries
    ):
        world(*(f"Ship {n}" for n in range(12)))
        with django_assert_max_num_queries(9):
            api.get(f"{ROOT}entities/")

    def test_one_is_renamed_and_retyped(self, api, world, entity_of):
        world("Rexx")
        url = f"{ROOT}entities/{entity_of('Rexx').id}/"
        body = api.patch(url, {"name": "Rex", "entity_type": "other"}, format="json").json()
        assert (body["name"], body["entity_type"]) == ("Rex", "other")
        assert [name["name"] for name in body["names"]] == ["Rexx"]
        assert api.get(url).json() == body

    def test_a_taken_name_and_a_bad_kind_are_problems(self, api, world, entity_of):
        world("Rex", "Max")
        url = f"{ROOT}entities/{entity_of('Rex').id}/"
        assert "Merge" in problem(api.patch(url, {"name": "max"}, format="json"), 409)["detail"]
        body = problem(api.patch(url, {"entity_type": "boat"}, format="json"), 400)
        assert "entity_type" in body["errors"]

    def test_deleting_one_leaves_the_memories(self, api, world, entity_of):
        memory = world("Rex")["Rex"]
        url = f"{ROOT}entities/{entity_of('Rex').id}/"
        assert api.delete(url).status_code == 204
        problem(api.get(url), 404)
        assert api.get(f"{ROOT}memories/{memory.id}/").json()["entities"] == []

    def test_merge_and_unmerge(self, api, world, entity_of):
        world("Rex", "Rexy")
        one, two = entity_of("Rex").id, entity_of("Rexy").id
        body = {"ids": [str(two)], "into": str(one)}
        merged = api.post(f"{ROOT}entities/merge/", body, format="json").json()
        assert (merged["id"], merged["memory_count"]) == (str(one), 2)
        assert api.get(f"{ROOT}entities/{two}/").json()["merged_into"] == str(one)
        apart = api.post(f"{ROOT}entities/{two}/unmerge/").json()
        assert (apart["merged_into"], apart["memory_count"]) == (None, 1)

    def test_kinds_that_do_not_fit_are_a_conflict(self, api, world, entity_of):
        world("Rex")
        world("Prague", kind="place")
        body = {"ids": [str(entity_of("Rex").id)], "into": str(entity_of("Prague").id)}
        problem(api.post(f"{ROOT}entities/merge/", body, format="json"), 409)

    @pytest.mark.parametrize("body", [{}, {"ids": []}, {"ids": ["x"], "into": "y"}])
    def test_a_broken_merge_is_a_problem(self, api, body):
        problem(api.post(f"{ROOT}entities/merge/", body, format="json"), 400)

    def test_proposals_are_listed_and_decided(self, api, world):
        world("Jana Novak", "Dr. Jana Novak")
        (shown,) = api.get(f"{ROOT}entities/proposals/").json()["results"]
        assert {shown["first"]["name"], shown["second"]["name"]} == {
            "Jana Novak", "Dr. Jana Novak",
        }  # fmt: skip
        url = f"{ROOT}entities/proposals/{shown['id']}/decide/"
        problem(api.post(url, {}, format="json"), 400)
        assert api.post(url, {"same": True}, format="json").json()["status"] == "merged"
        assert api.get(f"{ROOT}entities/proposals/").json()["results"] == []


class TestLinks:
    @pytest.fixture
    def pair(self, alice, acting):
        with acting(alice):
            return MemoryFactory(user=alice), MemoryFactory(user=alice)

    def linked(self, api, source, target, **given):
        body = {"target": str(target.id), "link_type": "refines", "reasoning": "It says more."}
        return api.post(f"{ROOT}memories/{source.id}/links/", {**body, **given}, format="json")

    def test_a_link_is_made_shown_at_both_ends_and_taken_away(self, api, pair):
        one, two = pair
        made = self.linked(api, one, two, bond="of one boat")
        assert made.status_code == 201
        assert made.json()["author"] == "person"
        (out,) = api.get(f"{ROOT}memories/{one.id}/").json()["links"]
        (back,) = api.get(f"{ROOT}memories/{two.id}/").json()["links"]
        assert (out["direction"], out["memory"], out["text"]) == ("out", str(two.id), two.text)
        assert (back["direction"], back["memory"], back["bond"]) == (
            "in", str(one.id), "of one boat",
        )  # fmt: skip
        url = f"{ROOT}memories/{one.id}/links/{two.id}/"
        assert api.delete(url).status_code == 204
        problem(api.delete(url), 404)

    def test_what_does_not_fit_is_a_problem(self, api, pair):
        one, two = pair
        assert "reasoning" in problem(self.linked(api, one, two, reasoning="why"), 400)["errors"]
        assert "link_type" in problem(self.linked(api, one, two, link_type="x"), 400)["errors"]
        assert "target" in problem(self.linked(api, one, one), 400)["errors"]

    def test_an_archived_end_is_not_shown_and_not_linked(self, api, alice, acting, pair):
        one, two = pair
        self.linked(api, one, two)
        with acting(alice):
            services.archive(user=alice, memory_id=two.id, reason="old")
        assert api.get(f"{ROOT}memories/{one.id}/").json()["links"] == []
        problem(self.linked(api, one, two), 404)

    def test_the_graph_has_nodes_by_hops_and_the_links_between_them(self, api, alice, acting, pair):
        one, two = pair
        with acting(alice):
            three = MemoryFactory(user=alice)
        self.linked(api, one, two)
        self.linked(api, two, three)
        url = f"{ROOT}memories/{one.id}/graph/"

        def depths(**query):
            return {node["id"]: node["depth"] for node in api.get(url, query).json()["nodes"]}

        assert depths(depth=1) == {str(one.id): 0, str(two.id): 1}
        assert depths() == {str(one.id): 0, str(two.id): 1, str(three.id): 2}
        body = api.get(url).json()
        assert [(link["source"], link["target"]) for link in body["links"]] == [
            (str(one.id), str(two.id)), (str(two.id), str(three.id)),
        ]  # fmt: skip
        assert body["is_cut"] is False
        problem(api.get(url, {"depth": 0}), 400)
        problem(api.get(url, {"depth": 99}), 400)

    def test_the_list_shows_links_and_entities_at_a_fixed_cost(
        self, api, alice, acting, world, django_assert_max_num_queries
    ):
        memories = list(world(*(f"Ship {n}" for n in range(8))).values())
        for one, two in pairwise(memories):
            self.linked(api, one, two)
        with django_assert_max_num_queries(11):
            rows = api.get(f"{ROOT}memories/").json()["results"]
        assert sum(len(row["links"]) for row in rows) == 14
        assert {row["entities"][0]["name"] for row in rows} == {f"Ship {n}" for n in range(8)}

    def test_the_list_is_filtered_by_entity_under_any_name(self, api, world, entity_of):
        memories = world("Rex", "Rexy", "Max")
        one, two = entity_of("Rex").id, entity_of("Rexy").id
        body = {"ids": [str(two)], "into": str(one)}
        api.post(f"{ROOT}entities/merge/", body, format="json")
        for entity_id in (one, two):
            rows = api.get(f"{ROOT}memories/", {"entity": str(entity_id)}).json()["results"]
            assert {row["id"] for row in rows} == {
                str(memories["Rex"].id), str(memories["Rexy"].id),
            }  # fmt: skip
        problem(api.get(f"{ROOT}memories/", {"entity": str(uuid4())}), 404)
        problem(api.get(f"{ROOT}memories/", {"entity": "x"}), 400)


def test_nobody_reaches_what_is_somebody_elses(api, bobs_api, alice, bob, acting, world, entity_of):
    memories = world("Jana Novak", "Dr. Jana Novak")
    one, two = (memories[name] for name in memories)
    jana, doctor = entity_of("Jana Novak"), entity_of("Dr. Jana Novak")
    with acting(alice):
        proposal = EntityMergeProposal.objects.for_user(alice).get()
    link = {"target": str(two.id), "link_type": "refines", "reasoning": "It says more."}
    assert api.post(f"{ROOT}memories/{one.id}/links/", link, format="json").status_code == 201
    with acting(bob):
        own = MemoryFactory(user=bob)
    merge = {"ids": [str(doctor.id)], "into": str(jana.id)}
    refused = [
        bobs_api.get(f"{ROOT}entities/{jana.id}/"),
        bobs_api.patch(f"{ROOT}entities/{jana.id}/", {"name": "Eve"}, format="json"),
        bobs_api.delete(f"{ROOT}entities/{jana.id}/"),
        bobs_api.post(f"{ROOT}entities/merge/", merge, format="json"),
        bobs_api.post(f"{ROOT}entities/{jana.id}/unmerge/"),
        bobs_api.post(
            f"{ROOT}entities/proposals/{proposal.id}/decide/", {"same": True}, format="json"
        ),
        bobs_api.post(f"{ROOT}memories/{one.id}/links/", link, format="json"),
        bobs_api.post(f"{ROOT}memories/{own.id}/links/", link, format="json"),
        bobs_api.delete(f"{ROOT}memories/{one.id}/links/{two.id}/"),
        bobs_api.get(f"{ROOT}memories/{one.id}/graph/"),
        bobs_api.get(f"{ROOT}memories/{one.id}/causal-chain/"),
        bobs_api.get(f"{ROOT}memories/", {"entity": str(jana.id)}),
    ]
    assert {response.status_code for response in refused} == {404}
    assert bobs_api.get(f"{ROOT}entities/").json()["results"] == []
    assert bobs_api.get(f"{ROOT}entities/proposals/").json()["results"] == []
    with acting(alice):
        assert MemoryLink.objects.for_user(alice).count() == 1
        assert Entity.objects.for_user(alice).filter(merged_into__isnull=True).count() == 2


@pytest.mark.parametrize("path", ["entities/", "entities/proposals/", "entities/merge/"])
def test_a_stranger_is_sent_away(path):
    assert APIClient().get(f"{ROOT}{path}").status_code in {401, 403}


def test_a_link_that_supersedes_ends_the_other_until_it_is_taken_away(alice, acting, api):
    with acting(alice):
        older, newer = MemoryFactory(user=alice), MemoryFactory(user=alice)
    body = {"target": str(older.id), "link_type": "supersedes", "reasoning": "She moved."}
    made = api.post(f"{ROOT}memories/{newer.id}/links/", body, format="json")
    assert made.status_code == 201, made.json()
    with acting(alice):
        older.refresh_from_db(fields=["valid_until"])
    assert older.valid_until is not None
    with acting(alice):
        services.unlink(user=alice, source_id=newer.id, target_id=older.id, at=NOW)
        older.refresh_from_db(fields=["valid_until"])
    assert older.valid_until is None
