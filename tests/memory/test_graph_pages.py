from __future__ import annotations

from uuid import uuid4

import pytest
from django.urls import reverse
from django.utils import timezone

from memory import drawing, entities, links, services
from memory.constants import PAGE_SIZE
from memory.models import Entity, EntityMergeProposal, MemoryLink
from memory.naming import Named
from tests.factories import MemoryFactory

NOW = timezone.now()
DRAWN = 'class="graph"'


@pytest.fixture
def page(client, alice):
    client.force_login(alice)
    return client


@pytest.fixture
def world(alice, acting):
    """Entities of Alice's, each mentioned by a memory of its own."""

    def make(*names, kind="person"):
        with acting(alice):
            for name in names:
                memory = MemoryFactory(user=alice, text=f"Note {uuid4()} on {name}.")
                entities.attach(alice, {memory.id: [Named(name=name, entity_type=kind)]}, at=NOW)
            return [Entity.objects.for_user(alice).get(name=name) for name in names]

    return make


@pytest.fixture
def linked(alice, acting):
    with acting(alice):
        one = MemoryFactory(user=alice, text="My boat <b>Merula</b> is blue.")
        two = MemoryFactory(user=alice, text="The boat is green.")
        links.connect(
            alice, one.id, two.id, link_type="supersedes", reasoning="Painted in May.",
            author="model", at=NOW,
        )  # fmt: skip
        return one, two


def url(name, *args):
    return reverse(f"memory_{name}", args=[getattr(arg, "id", arg) for arg in args])


def html(response):
    return response.content.decode()


class TestEntityPages:
    def test_the_list_has_the_most_mentioned_first(self, page, world, alice, acting):
        rex, _ = world("Rex", "Anna <i> Lee")
        with acting(alice):
            memory = MemoryFactory(user=alice)
            entities.attach(alice, {memory.id: [Named(name="Rex", entity_type="person")]}, at=NOW)
        shown = html(page.get(url("entities")))
        assert shown.index("Rex") < shown.index("Anna &lt;i&gt; Lee")
        assert "2 memories" in shown
        assert "1 memory<" in shown
        assert str(rex.id) in shown

    def test_it_is_searched_and_filtered(self, page, world):
        world("Rex")
        world("Prague", kind="place")
        assert "Prague" not in html(page.get(url("entities"), {"q": "rex"}))
        assert "Rex<" not in html(page.get(url("entities"), {"type": "place"}))
        assert "No such name" in html(page.get(url("entities"), {"q": "zzz"}))

    def test_nobody_yet(self, page):
        assert "Nobody yet" in html(page.get(url("entities")))

    def test_more_follow_by_a_link_without_loss(self, page, world):
        world(*(f"Ship {n:03}" for n in range(PAGE_SIZE + 2)))
        first = page.get(url("entities"))
        second = page.get(f"{url('entities')}?{first.context['next_query']}")
        names = [row.entity.name for row in first.context["rows"] + second.context["rows"]]
        assert names == [f"Ship {n:03}" for n in range(PAGE_SIZE + 2)]
        assert second.context["next_query"] == ""

    def test_one_shows_its_memories_and_other_names(self, page, world, alice, acting):
        rex, hound = world("Rex", "The Hound")
        with acting(alice):
            entities.merge(user=alice, ids=[hound.id], into=rex.id, at=NOW, by="model")
        response = page.get(url("entity", rex))
        assert "joined by me" in html(response)
        assert len(response.context["found"]) == 2
        assert page.get(url("entity", hound)).url == url("entity", rex)

    def test_a_name_is_corrected(self, page, world, alice, acting):
        rex, _ = world("Rexx", "Max")
        form = {"name": "Rex", "entity_type": "other"}
        assert page.post(url("entity_edit", rex), form).status_code == 302
        assert "<h1>Rex</h1>" in html(page.get(url("entity", rex)))
        refused = page.post(
            url("entity_edit", rex), {**form, "name": "Max", "entity_type": "person"}
        )
        assert refused.status_code == 409
        assert "Merge the two instead" in html(refused)
        assert page.post(url("entity_edit", rex), {"name": ""}).status_code == 400

    def test_merging_asks_which_name_stays(self, page, world, alice, acting):
        rex, hound = world("Rex", "The Hound")
        assert "The Hound" in html(page.get(url("entity_merge", rex), {"q": "hound"}))
        done = page.post(url("entity_merge", rex), {"other": hound.id, "keep": "other"})
        assert done.url == url("entity", hound)
        with acting(alice):
            rex.refresh_from_db()
            assert (rex.canonical_id, rex.merged_by) == (hound.id, "person")

    def test_merging_what_does_not_fit_says_so(self, page, world):
        (rex,) = world("Rex")
        (city,) = world("Prague", kind="place")
        refused = page.post(url("entity_merge", rex), {"other": city.id, "keep": "this"})
        assert refused.status_code == 409
        assert "different kinds" in html(refused)
        assert page.post(url("entity_merge", rex), {"keep": "this"}).status_code == 400

    def test_separating_asks_first(self, page, world, alice, acting):
        rex, hound = world("Rex", "The Hound")
        with acting(alice):
            entities.merge(user=alice, ids=[hound.id], into=rex.id, at=NOW)
        asked = page.get(url("entity_unmerge", hound))
        assert "Separate “The Hound”?" in html(asked)
        with acting(alice):
            hound.refresh_from_db()
            assert hound.canonical_id == rex.id
        assert page.post(url("entity_unmerge", hound)).url == url("entity", hound)
        with acting(alice):
            hound.refresh_from_db()
            assert hound.canonical_id is None

    def test_forgetting_asks_first(self, page, world, alice, acting):
        (rex,) = world("Rex")
        assert "Forget the name" in html(page.get(url("entity_forget", rex)))
        assert page.post(url("entity_forget", rex)).url == url("entities")
        with acting(alice):
            assert Entity.objects.for_user(alice).count() == 0

    @pytest.mark.parametrize(("answer", "status"), [("yes", "merged"), ("no", "refused")])
    def test_are_these_the_same(self, page, world, alice, acting, answer, status):
        world("Jana Novak", "Dr. Jana Novak")
        assert "1 pair of names" in html(page.get(url("entities")))
        with acting(alice):
            proposal = EntityMergeProposal.objects.for_user(alice).get()
        assert "Are these the same?" in html(page.get(url("proposals")))
        page.post(url("proposal", proposal), {"same": "perhaps"})
        page.post(url("proposal", proposal), {"same": answer})
        with acting(alice):
            proposal.refresh_from_db()
            assert proposal.status == status
        assert "Nothing to decide" in html(page.get(url("proposals")))


class TestGraphPages:
    def test_a_memory_shows_its_links_drawn_and_told(self, page, linked, alice, acting):
        one, two = linked
        shown = html(page.get(reverse("memory", args=[one.id])))
        assert DRAWN in shown
        assert "replaces" in shown
        assert "Painted in May." in shown
        back = html(page.get(reverse("memory", args=[two.id])))
        assert "replaces it" in back
        assert "&lt;b&gt;Merula" in back
        assert "<b>Merula" not in back
        assert DRAWN in html(page.get(url("graph", one)))

    def test_a_memory_that_stands_alone_says_so(self, page, alice, acting):
        with acting(alice):
            memory = MemoryFactory(user=alice)
        shown = html(page.get(reverse("memory", args=[memory.id])))
        assert "It stands alone so far." in shown
        assert DRAWN not in shown

    def test_it_names_whom_it_mentions(self, page, world, alice, acting):
        (rex,) = world("Rex")
        with acting(alice):
            memory = rex.memory_links.get().memory
        assert url("entity", rex) in html(page.get(reverse("memory", args=[memory.id])))

    @pytest.mark.usefixtures("embedder")
    def test_a_link_is_added_to_a_memory_that_is_looked_for(self, page, alice, acting):
        with acting(alice):
            one = MemoryFactory(user=alice, text="My boat is blue.")
            two = MemoryFactory(user=alice, text="The dentist is called Weber.")
        assert "Weber" in html(page.get(url("link", one), {"q": "dentist"}))
        form = {"target": two.id, "link_type": "precedes", "reasoning": "It was first."}
        assert page.post(url("link", one), {**form, "reasoning": "x"}).status_code == 400
        assert page.post(url("link", one), {**form, "target": uuid4()}).status_code == 404
        assert page.post(url("link", one), form).url == reverse("memory", args=[one.id])
        with acting(alice):
            assert MemoryLink.objects.for_user(alice).get().author == "person"

    def test_a_link_is_removed_and_the_page_stays_where_it_was(self, page, linked, alice, acting):
        one, two = linked
        done = page.post(url("unlink", one, two), {"inward": "1"})
        assert done.url == reverse("memory", args=[two.id])
        assert page.post(url("unlink", one, two)).status_code == 404


def test_nobody_sees_or_changes_what_is_somebody_elses(client, bob, alice, acting, world, linked):
    jana, doctor = world("Jana Novak", "Dr. Jana Novak")
    with acting(alice):
        proposal = EntityMergeProposal.objects.for_user(alice).get()
    one, two = linked
    client.force_login(bob)
    for name, args in [
        ("entity", [jana]), ("entity_merge", [jana]), ("entity_unmerge", [jana]),
        ("entity_forget", [jana]), ("graph", [one]), ("link", [one]),
    ]:  # fmt: skip
        assert client.get(url(name, *args)).status_code == 404
    for name, args, form in [
        ("entity_edit", [jana], {"name": "Eve", "entity_type": "person"}),
        ("entity_merge", [jana], {"other": doctor.id, "keep": "this"}),
        ("entity_unmerge", [jana], {}), ("entity_forget", [jana], {}),
        ("proposal", [proposal], {"same": "yes"}), ("unlink", [one, two], {}),
    ]:  # fmt: skip
        assert client.post(url(name, *args), form).status_code == 404
    assert "Jana" not in html(client.get(url("entities")))
    assert "Jana" not in html(client.get(url("proposals")))
    with acting(alice):
        assert MemoryLink.objects.for_user(alice).count() == 1
        assert Entity.objects.for_user(alice).filter(merged_into__isnull=True).count() == 2


def test_a_stranger_is_asked_to_sign_in(client):
    for name in ("entities", "proposals"):
        assert client.get(url(name)).status_code == 302


def test_rings_lie_around_the_middle_and_children_near_their_parents():
    middle, *ring = (uuid4() for _ in range(5))
    outer = [uuid4(), uuid4()]
    depths = {middle: 0, **dict.fromkeys(ring, 1), **dict.fromkeys(outer, 2)}
    edges = [(middle, one) for one in ring] + [(ring[0], outer[0]), (outer[1], ring[2])]
    places = drawing.layout(depths, edges)
    assert places[middle] == drawing.Point(x=0.0, y=0.0)
    assert len(set(places.values())) == len(depths)
    reach = max(abs(place.x) + abs(place.y) for place in places.values())
    assert reach <= 2 * drawing.RING * 1.5
    line = drawing.line(places[middle], places[ring[0]])
    assert line.start != places[middle]
    assert drawing.line(places[middle], places[middle]).start == places[middle]
    assert drawing.layout({middle: 0}, []) == {middle: places[middle]}


def test_archiving_the_other_end_takes_it_out_of_the_picture(page, linked, alice, acting):
    one, two = linked
    with acting(alice):
        services.archive(user=alice, memory_id=two.id, reason="old")
    assert "green" not in html(page.get(reverse("memory", args=[one.id])))


class TestChains:
    @pytest.fixture
    def told(self, alice, acting):
        """A flood, because of a burst pipe, because of the frost; and what came of the flood."""
        texts = ("The cellar was flooded.", "A pipe burst.", "There was frost.", "We moved out.")
        with acting(alice):
            flood, pipe, frost, move = (MemoryFactory(user=alice, text=text) for text in texts)
            made = [
                links.connect(
                    alice, one.id, two.id, link_type=kind, reasoning="It says so.", author="rule",
                    at=NOW,
                )
                for one, two, kind in (
                    (flood, pipe, "because"), (frost, pipe, "triggered"), (move, flood, "because"),
                )
            ]  # fmt: skip
        return (flood, pipe, frost, move), made

    def test_causes_and_consequences_stand_under_one_another(self, page, told):
        flood, *_ = told[0]
        shown = html(page.get(url("graph", flood)))
        places = [shown.index(text) for text in ("What led to it", "What came of it")]
        assert places[0] < shown.index("the reason") < shown.index("what set it off") < places[1]
        assert "for this reason" in shown[places[1] :]
        assert "70 % alike" in shown
        assert "It stands alone" not in shown

    def test_a_link_of_the_chain_is_confirmed_and_the_page_stays(self, page, told, alice, acting):
        (flood, pipe, *_), made = told
        done = page.post(url("link_confirm", pipe, made[1]), {"back": flood.id}, follow=True)
        assert done.redirect_chain[-1][0] == reverse("memory", args=[flood.id])
        assert "confirmed by you" in html(done)
        with acting(alice):
            assert MemoryLink.objects.for_user(alice).get(id=made[1].id).confirmed_at

    def test_a_link_of_the_chain_is_removed_and_the_page_stays(self, page, told, alice, acting):
        (flood, pipe, *_), made = told
        done = page.post(url("link_remove", pipe, made[1]), {"back": flood.id}, follow=True)
        assert done.redirect_chain[-1][0] == reverse("memory", args=[flood.id])
        assert "There was frost." not in html(done)
        assert page.post(url("link_remove", pipe, made[1])).status_code == 404

    def test_a_form_leads_nowhere_else(self, page, told):
        (flood, *_), made = told
        done = page.post(url("link_confirm", flood, made[0]), {"back": "https://example.org/"})
        assert done.url == reverse("memory", args=[flood.id])

    def test_somebody_elses_links_are_not_found(self, client, bob, told):
        (flood, *_), made = told
        client.force_login(bob)
        for name in ("link_confirm", "link_remove"):
            assert client.post(url(name, flood, made[0])).status_code == 404

    def test_confirming_a_replacement_says_what_comes_of_it(self, page, linked, alice, acting):
        one, two = linked
        with acting(alice):
            (made,) = MemoryLink.objects.for_user(alice)
        done = page.post(url("link_confirm", one, made), follow=True)
        assert "past from now on" in html(done)
        with acting(alice):
            two.refresh_from_db()
        assert two.valid_until is not None
