from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.urls import reverse

from memory import services
from memory.constants import PAGE_SIZE
from memory.models import Memory, Trust
from tests.factories import MemoryFactory

NOW = datetime(2026, 11, 28, 23, 30, tzinfo=UTC)  # the 29th in Berlin
HTMX = {"HX-Request": "true"}


@pytest.fixture
def page(client, alice):
    alice.timezone = "Europe/Berlin"
    alice.save(update_fields=["timezone"])
    client.force_login(alice)
    return client


@pytest.fixture
def boat(alice, acting, segment):
    segment.at = NOW
    with acting(alice):
        segment.said("My boat is called Merula.")
        (memory_id,) = services.remember(
            user=alice, segment_id=segment.id, messages=segment.messages, at=NOW
        ).memory_ids
        return Memory.objects.for_user(alice).get(id=memory_id)


def url(name, memory):
    return reverse(name, args=[memory.id])


def test_a_row_says_when_and_links_to_where_it_was_said(page, boat, segment):
    html = page.get(reverse("memories")).content.decode()
    assert "My boat is called Merula." in html
    assert "29 November 2026" in html
    assert f"/?at={segment.messages[0].message_id}" in html


def test_an_empty_memory_has_kind_words(page):
    assert "Nothing yet" in page.get(reverse("memories")).content.decode()
    assert "Nothing is archived" in page.get(reverse("memories"), {"archived": 1}).content.decode()
    assert "Nothing about that" in page.get(reverse("memories"), {"q": "boat"}).content.decode()


def test_a_search_shows_only_what_answers_it(page, boat, alice, acting):
    with acting(alice):
        MemoryFactory(user=alice, text="The landlord is Dr. Weber.")
    html = page.get(reverse("memories"), {"q": "boat"}).content.decode()
    assert "Merula" in html
    assert "Weber" not in html


def test_older_memories_follow_by_a_link_without_loss(page, alice, acting):
    with acting(alice):
        for number in range(PAGE_SIZE + 3):
            MemoryFactory(user=alice, text=f"Fact <{number}>.", created_at=NOW + timedelta(number))
    first = page.get(reverse("memories"))
    second = page.get(f"{reverse('memories')}?{first.context['older_query']}")
    shown = [row.text for row in first.context["page"].rows + second.context["page"].rows]
    assert shown == [f"Fact <{number}>." for number in reversed(range(PAGE_SIZE + 3))]
    assert second.context["older_query"] == ""
    assert "Fact &lt;1&gt;." in second.content.decode()


def test_a_broken_place_starts_from_the_newest(page, boat):
    assert "Merula" in page.get(reverse("memories"), {"after": "nonsense~x"}).content.decode()


def test_the_list_costs_the_same_whatever_its_length(
    page, alice, acting, django_assert_max_num_queries
):
    with acting(alice):
        MemoryFactory.create_batch(20, user=alice)
    # session, user, memories, sources, and two that count what waits
    with django_assert_max_num_queries(6):
        page.get(reverse("memories"))


def test_a_memory_shows_every_sentence_it_rests_on(page, boat, alice, acting, new_segment):
    again = new_segment(at=NOW + timedelta(days=1)).said("Well, my boat is called Merula.")
    again.said("My boat is called Merula!")
    with acting(alice):
        services.remember(user=alice, segment_id=again.id, messages=again.messages, at=NOW)
    html = page.get(url("memory", boat)).content.decode()
    assert "<blockquote>My boat is called Merula.</blockquote>" in html
    assert "<blockquote>My boat is called Merula!</blockquote>" in html


def test_a_memory_can_be_read_in_the_words_around_it(page, alice, acting, segment):
    segment.said("What a day. My boat is called Merula. <b>She leaks.</b>")
    with acting(alice):
        services.remember(user=alice, segment_id=segment.id, messages=segment.messages, at=NOW)
        memory = Memory.objects.for_user(alice).get(text__contains="Merula")
    html = page.get(url("memory", memory)).content.decode()
    assert "As it was said" in html
    assert "What a day. My boat is called Merula. &lt;b&gt;She leaks.&lt;/b&gt;" in html


def test_a_memory_says_in_short_what_it_tells_and_who_told_it(page, alice, acting):
    said = "We decided to use PostgreSQL because it has <b>pgvector</b>. Approved by Jean."
    with acting(alice):
        told = services.create(user=alice, text=said, wing="Atlas", trust=Trust.TOOL)
        plain = services.create(user=alice, text="It rained.")
    html = page.get(url("memory", told)).content.decode()
    assert "| reason: it has &lt;b&gt;pgvector&lt;/b&gt; | ok:Jean" in html
    assert "Another program told me" in html
    html = page.get(url("memory", plain)).content.decode()
    assert "In short" not in html
    assert "You wrote it down yourself" in html


def test_a_long_memory_is_cut_in_the_list_and_whole_on_its_page(page, alice, acting):
    with acting(alice):
        memory = services.create(user=alice, text="The harbour was quiet. " * 100 + "The end.")
    assert "The end." not in page.get(reverse("memories")).content.decode()
    assert "The end." in page.get(url("memory", memory)).content.decode()


def test_editing_without_script_comes_back_to_the_memory(page, boat):
    form = page.get(url("memory_edit", boat))
    assert "<form" in form.content.decode()
    response = page.post(
        url("memory_edit", boat),
        {"text": "Alice's boat is called Alauda.", "memory_type": "fact"},
    )
    assert response.status_code == 302
    assert "Alauda" in page.get(response.url).content.decode()


def test_editing_in_place_gives_the_row_back(page, boat):
    form = page.get(url("memory_edit", boat), headers=HTMX).content.decode()
    assert form.lstrip().startswith("<li")
    response = page.post(
        url("memory_edit", boat),
        {
            "text": "Alice's boat is called Alauda.",
            "memory_type": "fact",
            "happens_at": "2026-12-01T10:00",
        },
        headers=HTMX,
    )
    html = response.content.decode()
    assert html.lstrip().startswith("<li")
    assert "Alauda" in html
    assert "1 December 2026" in html


def test_times_of_the_form_are_the_persons_own(page, boat, alice, acting):
    page.post(
        url("memory_edit", boat),
        {"text": boat.text, "memory_type": "fact", "happens_at": "2026-12-01T10:00"},
    )
    with acting(alice):
        boat.refresh_from_db()
    assert boat.happens_at == datetime(2026, 12, 1, 9, tzinfo=UTC)
    assert "2026-12-01T10:00" in page.get(url("memory_edit", boat)).content.decode()


def test_a_bad_edit_says_what_is_wrong_and_keeps_what_was_typed(page, boat, alice, acting):
    with acting(alice):
        MemoryFactory(user=alice, text="Alice sails.")
    for text, says in (("x", "between 3 and 65,536"), ("Alice sails!", "says the same already")):
        response = page.post(
            url("memory_edit", boat), {"text": text, "memory_type": "fact"}, headers=HTMX
        )
        html = response.content.decode()
        assert says in html
        assert f">\n{text}</textarea>" in html


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])
def test_archive_and_restore(page, boat, headers):
    archived = page.post(url("memory_archive", boat), headers=headers, follow=True)
    assert "archived" in archived.content.decode()
    assert "Merula" not in page.get(reverse("memories")).content.decode()
    assert "Merula" in page.get(reverse("memories"), {"archived": 1}).content.decode()
    restored = page.post(url("memory_restore", boat), headers=headers, follow=True)
    assert "Restored." in restored.content.decode()
    assert "Merula" in page.get(reverse("memories")).content.decode()


def test_a_memory_whose_twin_lives_says_so_on_restore(page, boat, alice, acting):
    page.post(url("memory_archive", boat))
    with acting(alice):
        MemoryFactory(user=alice, text=boat.text)
    for headers in ({}, HTMX):
        html = page.post(url("memory_restore", boat), headers=headers).content.decode()
        assert "says the same already" in html


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])
def test_deleting_asks_first_and_is_final(page, boat, alice, acting, headers):
    asked = page.get(url("memory_forget", boat), headers=headers).content.decode()
    assert "Delete this for good?" in asked
    with acting(alice):
        assert Memory.objects.for_user(alice).filter(id=boat.id).exists()
    done = page.post(url("memory_forget", boat), headers=headers, follow=True)
    assert "Forgotten" in done.content.decode()
    with acting(alice):
        assert not Memory.objects.for_user(alice).filter(id=boat.id).exists()
    assert page.get(url("memory", boat)).status_code == 404


@pytest.mark.parametrize(
    "name", ["memory", "memory_edit", "memory_archive", "memory_restore", "memory_forget"]
)
def test_bob_finds_no_page_of_alices(client, bob, boat, name):
    client.force_login(bob)
    assert client.post(url(name, boat)).status_code in {404, 405}
    assert client.get(url(name, boat)).status_code in {404, 405}
    assert "Merula" not in client.get(reverse("memories")).content.decode()


def test_a_stranger_is_sent_to_sign_in(client, boat):
    response = client.get(reverse("memories"))
    assert response.status_code == 302
    assert "/accounts/login/" in response.url
