"""A context of made-up memories: every form to the letter, every cost exact, whatever they say."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from memory import contexts, fingerprints, rendering
from memory.fingerprints import Fingerprint, PersonalFact, Rejected
from memory.types import LinkedMemory, Mode, Note, Recalled, Why
from mira_site import tokens

BERLIN = ZoneInfo("Europe/Berlin")
AT = datetime(2026, 5, 8, 9, tzinfo=UTC)
SPACE = UUID(int=1)
DECISION = Fingerprint(
    type="decision",
    date="2026-05-08",
    subjects=("Database",),
    decision="PostgreSQL",
    rejected=(Rejected(name="MySQL"), Rejected(name="SQLite")),
    reasons=("transactions", "one truth"),
    validated_by="Marie",
    assignee="Anna",
    deadline="2026-06-01",
)
LONG = (
    "We talked for two hours about where to keep what we know. We decided to go with PostgreSQL,"
    " not MySQL and not SQLite, because of transactions, and because there is one truth then."
    " Anna does it until the first of June; Marie has agreed. After that there was cake, and"
    " everybody went home by the evening train, which was late again."
)


def memory(name: str, text: str, *, score: float = 0.5, at: datetime = AT, **fields) -> Recalled:
    memory_id = uuid5(SPACE, name)
    return Recalled(
        id=memory_id, short_id=memory_id.hex[:8], text=text, created_at=at, said_at=at,
        score=score, why=Why(text="close in meaning", path="meaning"),
        **{"memory_type": "fact", "wing": "", "room": "", **fields},
    )  # fmt: skip


def shown(*memories: Recalled, budget: int = 4000) -> str:
    return contexts.context(memories, budget_tokens=budget, zone=BERLIN).text


# --- To the letter -------------------------------------------------------------------------------
def test_verbatim_is_the_text_under_the_line_of_its_day():
    one = memory("one", "Alice's boat & <Merula>.")
    assert shown(one) == (
        "<memories>\n"
        "8 May 2026:\n"
        f'<memory id="mem_{one.short_id}">Alice\'s boat &amp; &lt;Merula&gt;.</memory>\n'
        "</memories>"
    )


def test_a_fingerprint_is_the_line_of_its_facts():
    one = memory("one", LONG, fingerprint=fingerprints.canonical(DECISION))
    assert shown(one, budget=100) == (
        "<memories>\n"
        "8 May 2026:\n"
        f'<memory id="mem_{one.short_id}" mode="fingerprint">'
        "[Database|2026-05-08] | PostgreSQL | (rejected: MySQL,SQLite)"
        " | reason: transactions; one truth | @Anna | due:2026-06-01 | ok:Marie</memory>\n"
        "</memories>"
    )


def test_a_header_is_kind_day_and_wing():
    one = memory("one", LONG, memory_type="session_note", wing="Office & <Co>")
    assert shown(one, budget=60) == (
        "<memories>\n"
        "8 May 2026:\n"
        f'<memory id="mem_{one.short_id}" mode="header">'
        "[SESSION_NOTE|2026-05-08|Office &amp; &lt;Co&gt;]</memory>\n"
        "</memories>"
    )
    assert "[FACT|2026-05-08]" in shown(memory("two", LONG), budget=50)


def test_a_fingerprint_says_whose_word_it_is_and_what_is_open_as_the_text_does():
    other = UUID(int=7)
    one = memory(
        "one", LONG, fingerprint=fingerprints.canonical(DECISION), origin="told by a tool",
        disputed_by=(other,), valid_until=AT,
    )  # fmt: skip
    text = shown(one, budget=140)
    assert 'mode="fingerprint" true="until 8 May 2026" origin="told by a tool"' in text
    assert 'undecided_against="mem_00000000"' in text


def test_notes_and_what_is_linked_stand_inside_the_text_in_full():
    base = memory("other", "It leaks.")
    linked = LinkedMemory(
        **{name: getattr(base, name) for name in (
            "id", "short_id", "text", "created_at", "said_at", "memory_type", "wing", "room",
        )},
        link_type="because", outward=True, bond='so "said"', reasoning="", depth=1, score=1.0,
        why=Why(text="linked", path="link"),
    )  # fmt: skip
    one = memory("one", "She sold it.", linked=(linked,), notes=(Note(text="Sad.", added_at=AT),))
    assert shown(one) == (
        "<memories>\n"
        "8 May 2026:\n"
        f'<memory id="mem_{one.short_id}">She sold it.\n'
        '<note added="8 May 2026">Sad.</note>\n'
        f'<linked how="because" id="mem_{linked.short_id}" said_on="8 May 2026"'
        ' bond="so &quot;said&quot;">It leaks.</linked>\n'
        "</memory>\n"
        "</memories>"
    )


def test_a_fingerprint_is_not_offered_where_it_saves_nothing_or_tells_nothing():
    dear = fingerprints.canonical(DECISION)
    nothing = fingerprints.canonical(Fingerprint(type="fact", entities=("Anna",)))
    for text, stored in (("PostgreSQL it is.", dear), (LONG, nothing), (LONG, "")):
        one = memory("one", text, fingerprint=stored)
        modes = [form.mode for form in rendering.forms(one, zone=BERLIN)]
        assert Mode.FINGERPRINT not in modes
        assert modes[-1] is Mode.VERBATIM


def test_forms_keep_more_and_cost_more_from_one_to_the_next():
    one = memory(
        "one", LONG, fingerprint=fingerprints.canonical(DECISION), excerpt=f"… {LONG[57:]}"
    )
    forms = rendering.forms(one, zone=BERLIN)
    assert [form.mode for form in forms] == list(Mode)
    for less, more in pairwise(forms):
        assert less.fidelity < more.fidelity
        assert less.tokens < more.tokens
    assert forms[1].fidelity <= 0.6


def test_an_excerpt_is_marked_as_one_and_not_offered_where_it_saves_nothing():
    one = memory("one", LONG, excerpt="… because of <transactions>. …", origin="told by a tool")
    (part,) = (form for form in rendering.forms(one, zone=BERLIN) if form.mode is Mode.EXCERPT)
    assert part.text == (
        f'<memory id="mem_{one.short_id}" mode="excerpt" origin="told by a tool">'
        "… because of &lt;transactions&gt;. …</memory>"
    )
    as_dear = memory("one", "Alice sails.", excerpt="Alice sails.")
    assert Mode.EXCERPT not in {form.mode for form in rendering.forms(as_dear, zone=BERLIN)}


def test_a_long_memory_gives_way_to_its_fingerprint_beside_short_ones():
    long = memory("long", LONG * 20, score=0.9, fingerprint=fingerprints.canonical(DECISION))
    short = [memory(f"{number}", f"Fact {number} is short.", score=0.3) for number in range(5)]
    context = contexts.context([long, *short], budget_tokens=400, zone=BERLIN)
    modes = {item.memory.id: item.mode for item in context.items}
    assert modes.pop(long.id) is Mode.FINGERPRINT
    assert list(modes.values()) == [Mode.VERBATIM] * 5


# --- Whatever they say ---------------------------------------------------------------------------
WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=120)
LISTS = st.lists(WORDS, max_size=3).map(tuple)
FINGERPRINTS = st.builds(
    Fingerprint,
    type=st.sampled_from(["fact", "decision", "preference"]),
    subjects=LISTS,
    decision=st.one_of(st.just(""), WORDS),
    reasons=LISTS,
    facts=st.lists(st.builds(PersonalFact, key=st.just("likes"), value=WORDS), max_size=3).map(
        tuple
    ),
)
ONE = st.fixed_dictionaries(
    {
        "text": st.one_of(WORDS, WORDS.map(lambda text: text * 30)),
        "score": st.floats(0, 1),
        "at": st.integers(0, 200_000).map(lambda minutes: AT + timedelta(minutes=minutes)),
        "wing": st.one_of(st.just(""), WORDS),
        "origin": st.sampled_from(["", "told by a tool", "read in outside text"]),
        "fingerprint": st.one_of(st.just(""), FINGERPRINTS.map(fingerprints.canonical)),
        "excerpt": st.one_of(st.just(""), WORDS),
    }
)
CORPORA = st.lists(ONE, max_size=12).map(
    lambda several: [memory(str(number), **one) for number, one in enumerate(several)]
)


@settings(max_examples=150, deadline=None)
@given(corpus=CORPORA, budget=st.one_of(st.integers(1, 120), st.integers(1, 3000)))
def test_never_a_token_over_the_budget_and_every_token_accounted_for(corpus, budget):
    context = contexts.context(corpus, budget_tokens=budget, zone=BERLIN)
    assert context.tokens == tokens.estimate(context.text) <= budget
    charged = sum(item.tokens for item in context.items)
    frame = tokens.estimate("<memories>\n</memories>")
    if context.items:
        lines = len(context.items) * 2 + 1  # each line's cost is rounded up
        assert 0 <= charged + frame - context.tokens <= lines
    assert sorted(item.memory.id for item in (*context.items, *context.left_out)) == sorted(
        one.id for one in corpus
    )
    assert all(item.text in context.text for item in context.items)
    assert all(item.gain >= 0 for item in context.items)
    assert 0 <= context.quality <= 1 + 1e-9


@settings(max_examples=50, deadline=None)
@given(corpus=CORPORA, budget=st.integers(1, 2000), seed=st.integers(0, 100))
def test_the_order_of_what_came_up_changes_not_a_byte(corpus, budget, seed):
    mixed = list(corpus)
    random.Random(seed).shuffle(mixed)
    one = contexts.context(corpus, budget_tokens=budget, zone=BERLIN)
    other = contexts.context(mixed, budget_tokens=budget, zone=BERLIN)
    assert one.text == other.text
    assert one.items == other.items


@settings(max_examples=50, deadline=None)
@given(corpus=CORPORA)
def test_with_room_for_everything_everything_wanted_stands_in_full(corpus):
    context = contexts.context(corpus, budget_tokens=100_000, zone=BERLIN)
    shown = {item.memory.id for item in context.items}
    assert shown >= {one.id for one in corpus if one.score > 1e-6}
    assert shown <= {one.id for one in corpus if one.score > 0}
    assert all(item.mode is Mode.VERBATIM for item in context.items)
