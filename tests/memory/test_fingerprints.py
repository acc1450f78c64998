"""Fingerprints as values and as rows: written with the text, replaced with it, gone with it."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db import connection

from memory import fingerprints, services
from memory.fingerprint_fields import fields, fingerprint
from memory.fingerprints import Fingerprint, PersonalFact, Rejected
from memory.models import Fingerprint as Row
from memory.models import Memory
from mira_site import embeddings, isolation
from tests.memory.conftest import SAID_AT

NOW = SAID_AT + timedelta(days=1)
FULL = Fingerprint(
    type="decision",
    date="2026-11-28",
    entities=("PostgreSQL", "Jean", "Hetzner"),
    subjects=("PostgreSQL", "Jean"),
    decision="PostgreSQL for v2",
    rejected=(Rejected(name="MySQL", note="not ACID"), Rejected(name="MongoDB")),
    reasons=("it is ACID", "we know it"),
    validated_by="CTO",
    assignee="Jean",
    deadline="2027-03-15",
    facts=(PersonalFact(key="likes", value="tea"), PersonalFact(key="likes", value="sailing")),
)
PLAIN = Fingerprint(type="fact", date="2026-11-28")


def row_of(user, memory_id) -> Row:
    return Row.objects.for_user(user).get(memory=memory_id)


def parsed(user, memory_id) -> Fingerprint:
    return fingerprints.parse(row_of(user, memory_id).canonical)


# --- The value ----------------------------------------------------------------------------------


def test_the_canonical_form_has_sorted_keys_no_space_and_nothing_empty():
    text = fingerprints.canonical(PLAIN)
    assert text == '{"date":"2026-11-28","type":"fact"}'
    full = fingerprints.canonical(FULL)
    assert list(json.loads(full)) == sorted(json.loads(full))
    assert '": ' not in full


def test_what_is_written_is_read_again_alike():
    for one in (FULL, PLAIN):
        assert fingerprints.parse(fingerprints.canonical(one)) == one


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"type":"fact","rejected":[{"nom":1}]}', "null"])
def test_anything_else_is_no_fingerprint(text):
    with pytest.raises(ValueError):
        fingerprints.parse(text)


def test_the_line_has_its_parts_in_the_documented_order():
    assert fingerprints.line(FULL) == (
        "[PostgreSQL,Jean|2026-11-28] | PostgreSQL for v2 | likes: tea; sailing | "
        "(rejected: MySQL,MongoDB) | reason: it is ACID; we know it | @Jean | due:2027-03-15 | "
        "ok:CTO"
    )


def test_a_plain_one_shows_its_default_subject_and_is_not_worth_showing():
    assert fingerprints.line(PLAIN) == "[Fact|2026-11-28]"
    assert fingerprints.line(Fingerprint(type="session_note")) == "[Note|unknown]"
    assert not fingerprints.is_worth_showing(PLAIN)
    assert fingerprints.is_worth_showing(FULL)


def test_facts_are_counted_with_the_subject():
    assert fingerprints.fact_count(PLAIN) == 1
    assert fingerprints.fact_count(FULL) == 1 + 2 + 2 + 3 + 2 + 1


def test_the_share_of_facts_is_at_most_three_fifths_and_falls_with_what_is_not_shown():
    one = Fingerprint(type="fact", facts=(PersonalFact(key="likes", value="tea"),))
    assert fingerprints.share_of_facts(one, text="I like tea.") == 0.6
    assert fingerprints.share_of_facts(one, text="I like tea. It rains. It snows. It is.") == 0.25
    assert fingerprints.share_of_facts(PLAIN, text="It rains.") == 0.0


def test_a_value_cannot_break_the_line():
    one = Fingerprint(type="fact", decision="a\nb | c")
    assert "\n" not in fingerprints.line(one)
    assert fingerprints.line(one).endswith("| a b c")


# --- Rows ---------------------------------------------------------------------------------------


def test_it_is_written_with_the_memory_by_rule(as_alice):
    memory = services.create(user=as_alice, text="We chose Redis over etcd. Tom approved it.")
    row = row_of(as_alice, memory.id)
    found = fingerprints.parse(row.canonical)
    assert (found.decision, found.validated_by) == ("Redis", "Tom")
    assert row.author == "rule"
    assert row.fact_count == fingerprints.fact_count(found)
    assert row.sha256 == fingerprints.sha256(row.canonical)
    assert memory.memory_type == found.type == "decision"


def test_relative_dates_are_those_of_the_day_it_was_said(as_alice, segment):
    segment.said("I will visit Anna in Graz tomorrow.")
    (memory_id,) = services.remember(
        user=as_alice, segment_id=segment.id, messages=segment.messages, at=NOW + timedelta(days=9)
    ).memory_ids
    assert (
        PersonalFact(key="plan", value="visit Anna in Graz 2026-11-29")
        in parsed(as_alice, memory_id).facts
    )


def test_an_edit_replaces_it(as_alice):
    memory = services.create(user=as_alice, text="I like green tea.")
    services.edit(user=as_alice, memory_id=memory.id, text="I hate green tea.")
    found = parsed(as_alice, memory.id)
    assert [one.key for one in found.facts] == ["dislikes"]
    assert Row.objects.for_user(as_alice).count() == 1


def test_another_type_is_noted_in_it(as_alice):
    memory = services.create(user=as_alice, text="I like green tea.")
    services.edit(user=as_alice, memory_id=memory.id, memory_type="fact")
    row = row_of(as_alice, memory.id)
    assert fingerprints.parse(row.canonical).type == "fact"
    assert row.sha256 == fingerprints.sha256(row.canonical)


def test_a_merged_memory_has_its_own(as_alice):
    one = services.create(user=as_alice, text="I like green tea.")
    two = services.create(user=as_alice, text="I like black coffee.")
    merge = services.merge(
        user=as_alice,
        memory_ids=[one.id, two.id],
        text="I like green tea and I like black coffee.",
    )
    assert len(parsed(as_alice, merge.result_id).facts) == 2


def test_many_memories_take_no_more_statements_than_few(as_alice, segment, new_segment):
    def statements(count: int, segment) -> int:
        segment.said(
            *(f"I visited town number {count}{place} in spring." for place in range(count))
        )
        with connection.execute_wrapper(counter):
            counter.count = 0
            services.remember(
                user=as_alice, segment_id=segment.id, messages=segment.messages, at=NOW
            )
        return counter.count

    class Counter:
        count = 0

        def __call__(self, execute, sql, params, many, context):
            self.count += "memory_fingerprints" in sql or "memory_passages" in sql
            return execute(sql, params, many, context)

    counter = Counter()
    assert statements(2, segment) == statements(20, new_segment())


def test_a_fingerprint_is_about_a_seventh_of_a_long_text(as_alice):
    text = (
        "On Thursday the four of us met in the small room to settle how the new version keeps its "
        "records, which had been open since the summer and had cost us two evenings already. "
        "Everybody had brought notes, Marie had drawn the tables on a sheet of paper, and Ben "
        "showed what had happened to the old files when the disk was full. We decided to use "
        "PostgreSQL for v2 because it is safe. Rejected: MySQL, MongoDB. Marie will write the "
        "migration by 15/03/2027. Approved by Tom. After that we talked for a while about the "
        "office, the broken heating and the cake that somebody had left in the kitchen, and went "
        "home rather late, tired and content with what we had done, through the first snow. "
    ) * 2
    memory = services.create(user=as_alice, text=text)
    found = parsed(as_alice, memory.id)
    assert (found.decision, found.assignee) == ("PostgreSQL for v2", "Marie")
    cost = len(embeddings.word_pieces(fingerprints.line(found)))
    assert cost < 0.2 * len(embeddings.word_pieces(text))


def test_bob_sees_no_fingerprint_of_alices(as_alice, bob):
    services.create(user=as_alice, text="I like green tea.")
    with isolation.acting_as(bob.pk), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM memory_fingerprints")
        assert cursor.fetchone() == (0,)


def test_forgetting_takes_it_along(as_alice):
    memory = services.create(user=as_alice, text="My boat is called Merula.")
    services.forget(user=as_alice, memory_id=memory.id)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM memory_fingerprints")
        assert cursor.fetchone() == (0,)


# --- By a model ---------------------------------------------------------------------------------


def extracted(fake_anthropic, user, segment, **given) -> Memory:
    text = "Alice chose the red boat over the blue one, and Tom approved it."
    fake_anthropic.on("extraction").answers(
        {"memories": [{"text": text, "memory_type": "decision", "messages": [1], **given}]}
    )
    segment.said("I chose the red boat over the blue one. Tom approved it.")
    (memory_id,) = services.remember(
        user=user, segment_id=segment.id, messages=segment.messages, at=NOW
    ).memory_ids
    return Memory.objects.for_user(user).get(id=memory_id)


def test_a_models_fields_stand_before_the_rules(as_alice, segment, fake_anthropic):
    memory = extracted(
        fake_anthropic, as_alice, segment,
        fingerprint={"decision": "the red boat", "rejected": ["the blue one"]},
    )  # fmt: skip
    row = row_of(as_alice, memory.id)
    found = fingerprints.parse(row.canonical)
    assert row.author == "model"
    assert found.decision == "the red boat"
    assert found.rejected == (Rejected(name="blue one"),)
    assert found.validated_by == "Tom"  # by rule: the model left it empty


@pytest.mark.parametrize(
    "given",
    [
        None, "red boat", 7, [], {}, {"decision": 7, "rejected": {"a": 1}, "facts": "x"},
        {"facts": [{"key": "gossip", "value": "red boat"}, 3]},
    ],
)  # fmt: skip
def test_bad_fields_never_cost_the_memory_and_rules_stand_in(
    as_alice, segment, fake_anthropic, given
):
    memory = extracted(fake_anthropic, as_alice, segment, fingerprint=given)
    row = row_of(as_alice, memory.id)
    assert row.author == "rule"
    assert fingerprints.parse(row.canonical).validated_by == "Tom"


def test_what_the_text_does_not_say_is_no_field():
    given = fields(
        {
            "decision": "sell the house",
            "reasons": ["the boat is red", "she wants to impress Zoe"],
            "deadline": "2027-03-15",
            "assignee": "Mia",
        }
    )
    text = "The boat is red. Mia paints it until 15 March."
    found = fingerprint(given, text=text, memory_type="fact")
    assert found is not None
    assert (found.decision, found.reasons) == ("", ("the boat is red",))
    assert (found.assignee, found.deadline) == ("Mia", "2027-03-15")


def test_fields_of_which_the_text_says_none_are_none_at_all():
    assert fingerprint(fields({"decision": "x"}), text="It rains.", memory_type="fact") is None
