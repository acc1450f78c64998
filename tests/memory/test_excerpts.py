"""Of a long memory a small budget shows the passage that answers."""

from __future__ import annotations

import pytest
from django.utils import timezone

from memory import excerpts, passages, rendering, selectors, services
from memory.models import Memory, Passage
from memory.quoting import as_read
from memory.types import Mode
from mira_site import embeddings, isolation

ABOUT = {
    "storm": "The storm took the roof of the boathouse in the night, number {}. ",
    "bread": "For the bread she lets the rye dough rest until the morning, number {}. ",
    "chess": "The chess club meets above the chemist's and drinks tea, number {}. ",
}
LONG = "".join(ABOUT[one].format(n) for one in ABOUT for n in range(25)).strip()


def asked(user, query: str, budget: int = 600):
    return selectors.recall_context(user, query, budget_tokens=budget, now=timezone.now())


@pytest.mark.parametrize(
    ("query", "about"), [("How does she make bread?", "bread"), ("Who plays chess?", "chess")]
)
def test_the_passage_that_answers_stands_for_a_text_that_does_not_fit(as_alice, query, about):
    memory = services.create(user=as_alice, text=LONG)
    (item,) = asked(as_alice, query).items
    assert (item.mode, item.memory.id) == (Mode.EXCERPT, memory.id)
    assert item.text.startswith(f'<memory id="mem_{memory.id.hex[:8]}" mode="excerpt">')
    shown = item.shown.strip("… ")
    assert shown in LONG
    assert shown.count(about) > len(shown) / 140
    assert shown.endswith(".")  # whole sentences
    assert shown[0].isupper()


def test_with_room_for_it_the_text_stands_in_full(as_alice):
    services.create(user=as_alice, text=LONG)
    (item,) = asked(as_alice, "How does she make bread?", budget=4_000).items
    assert (item.mode, item.shown) == (Mode.VERBATIM, LONG)


def test_short_texts_have_none_and_cost_no_statement(as_alice, django_assert_num_queries):
    short = services.create(user=as_alice, text="She lets the rye dough rest.")
    with django_assert_num_queries(0):
        assert excerpts.of(as_alice, {short.id: short.text}, {short.id: short.embedding}) == {}


def test_a_frame_stays_around_what_is_quoted_and_gaps_are_marked():
    text = as_read("Alice", LONG)
    (first, *_, last) = spans = passages.spans(text)
    middle = excerpts.cut(text, *spans[1])
    assert middle.startswith("Alice read: “… The ")
    assert middle.endswith(". …”")
    assert excerpts.cut(text, *first).startswith("Alice read: “The storm")
    assert excerpts.cut(text, *last).endswith(f"{LONG[-20:]}”")


def test_where_no_sentence_ends_near_it_is_cut_at_the_passage():
    text = "word " * 1_000 + "end"
    start, end = passages.spans(text)[1]
    assert excerpts.cut(text, start, end) == f"… {text[start:end]} …"


def test_it_is_escaped_and_says_whose_word_it_is_as_the_text_does(as_alice):
    text = LONG.replace("rye dough", "<rye> dough & salt")
    memory = services.create(user=as_alice, text=text)
    Memory.objects.filter(id=memory.id).update(trust=1)
    (item,) = asked(as_alice, "How does she make bread?").items
    assert item.mode is Mode.EXCERPT
    assert "&lt;rye&gt; dough &amp; salt" in item.text
    assert 'origin="' in item.text
    assert rendering.EXCERPT_KEEPS > 0.6  # more than the line of its facts


def test_neither_another_persons_passage_nor_one_of_another_model_is_shown(as_alice, bob):
    memory = services.create(user=as_alice, text=LONG)
    vectors = {memory.id: embeddings.embed_one("bread")}
    with isolation.acting_as(bob.pk):
        assert excerpts.of(bob, {memory.id: LONG}, vectors) == {}
    assert list(excerpts.of(as_alice, {memory.id: LONG}, vectors)) == [memory.id]
    Passage.objects.for_user(as_alice).update(embedding_model="another")
    assert excerpts.of(as_alice, {memory.id: LONG}, vectors) == {}
