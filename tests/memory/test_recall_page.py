"""The page that shows what a question would bring up."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.urls import reverse
from django.utils import timezone

from memory import selectors, services
from memory.models import MemoryAccess
from mira_site import isolation
from tests.factories import MemoryFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(client, as_alice):
    client.force_login(as_alice)
    return client


@pytest.fixture
def boat(as_alice, embedder):
    texts = (
        "Alice's boat is called Merula and lies in Trieste.",
        "Merula the boat needs a new sail before May.",
    )
    made = [services.create(user=as_alice, text=text, wing="Boat") for text in texts]
    services.create(user=as_alice, text="Alice bakes bread on Sundays.", wing="home")
    return made


def shown(client, **query) -> str:
    answer = client.get(reverse("memory_recall"), query)
    assert answer.status_code == 200
    return answer.content.decode()


def pre(html: str) -> str:
    """The context on the page, as a browser reads it."""
    (found,) = re.findall(r"<pre[^>]*>(.*?)</pre>", html, re.DOTALL)
    return unescape(found)


def test_the_context_is_shown_exactly_as_the_model_would_get_it(page, as_alice, boat):
    query = "What is the boat <b>called</b>?"
    wanted = selectors.recall_context(as_alice, query, budget_tokens=500, now=timezone.now())
    html = shown(page, q=query, budget=500)
    assert wanted.text
    assert pre(html) == wanted.text
    assert "<b>called" not in html
    assert f"<strong>{wanted.tokens}</strong> of 500 tokens" in html


def test_markup_in_a_memory_stays_text(page, as_alice, embedder):
    services.create(user=as_alice, text="The boat says <script>alert(1)</script> on its stern.")
    html = shown(page, q="What does the boat say?")
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html


def test_each_candidate_shows_its_mode_its_cost_and_what_spoke_for_it(page, boat):
    html = shown(page, q="What is the boat called?")
    assert "Merula and lies in Trieste." in html
    assert re.search(r"in full, \d+ tokens", html)
    always = ("Relevance", "Meaning", "Words", "Wording", "Conversation", "Freshness", "Density",
              "Repetition", "Importance")  # fmt: skip
    for label in always:
        assert f'<span class="recall-bar__label">{label}</span>' in html
    where_so = ("Name", "Date", "Another voice", "Asks itself", "Cause or effect")
    for label in always + where_so:
        assert f"<dt>{label}</dt>" in html


def test_what_does_not_fit_is_left_out_with_its_reason(page, boat):
    html = shown(page, q="What is the boat called?", budget=40)
    assert "Left out" in html
    assert "recalled__reason" in html


def test_a_budget_too_small_for_anything_offers_a_larger_one(page, boat):
    html = shown(page, q="What is the boat called?", budget=2)
    assert "No room for a single memory" in html
    assert "Try 1000 tokens" in html
    assert "<pre" not in html


def test_a_wing_narrows_whatever_its_case(page, boat):
    html = shown(page, q="What does Alice bake, and what is the boat called?", wing="boat")
    assert "Merula" in html
    assert "bread" not in html
    assert '<option value="Boat" selected>Boat (2)</option>' in html


def test_nothing_found_in_a_wing_says_so_and_offers_every_wing(page, boat):
    html = shown(page, q="xylophone quartz", wing="home")
    assert "Nothing comes to mind" in html
    assert "Look in every wing" in html


@pytest.mark.parametrize("budget", ["0", "100001", "many"])
def test_a_budget_that_is_none_is_said_in_words(page, boat, budget):
    html = shown(page, q="What is the boat called?", budget=budget)
    assert "I could not look." in html
    assert 'value="What is the boat called?"' in html


def test_a_wing_that_there_is_not_is_said_in_words(page, boat):
    assert "I could not look." in shown(page, q="boat", wing="nowhere")


def test_before_a_question_there_are_kind_words(page, as_alice):
    assert "Nothing to remember yet" in shown(page)
    MemoryFactory(user=as_alice)
    html = shown(page)
    assert "Ask me something" in html
    assert f'href="{reverse("memory_recall")}" aria-current="page"' in html


def test_looking_leaves_no_trace(page, as_alice, boat):
    shown(page, q="What is the boat called?")
    assert not MemoryAccess.objects.for_user(as_alice).exists()


def test_nobody_sees_anothers_memories_or_wings(client, bob, boat):
    with isolation.acting_as(bob.pk):
        MemoryFactory(user=bob, text="Bob rows on the lake.")
    client.force_login(bob)
    html = shown(client, q="What is the boat called?")
    assert "Merula" not in html
    assert "Boat" not in html


def test_the_page_is_for_people_who_are_signed_in(client):
    assert client.get(reverse("memory_recall")).status_code == 302


def test_a_list_row_names_only_a_place_that_somebody_chose(page, boat, as_alice, embedder):
    html = page.get(reverse("memories")).content.decode()
    assert "<span>Boat</span>" in html
    services.create(user=as_alice, text="Jana gets seasick.", room="crew")
    html = page.get(reverse("memories")).content.decode()
    assert "<span>crew</span>" in html
    assert "life" not in html
