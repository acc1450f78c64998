"""What webhooks hear of memories: each thing that happens, once, without a word of text."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from memory import scores, selectors, services
from memory.models import Memory, MemoryLink
from mira_site import embeddings, isolation, metrics
from mira_site.errors import EmbeddingsUnavailable
from mira_site.webhooks import services as webhooks
from mira_site.webhooks.models import Delivery
from tests.factories import MemoryFactory

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def listening(alice, embedder):
    with isolation.acting_as(alice.pk):
        webhooks.create(user=alice, url="https://example.org/hook", events=["*"])
        yield alice


def told(user, event_type=None):
    rows = Delivery.objects.for_user(user).order_by("occurred_at", "id")
    if event_type:
        rows = rows.filter(event_type=event_type)
    return [row.payload for row in rows]


def test_a_stored_memory_is_told_without_its_text(listening):
    made = services.create(user=listening, text="Alice sails a boat called Merula.", wing="Boats")
    (payload,) = told(listening, "memory.stored")
    assert payload["memory"] == str(made.id)
    assert payload["wing"] == made.wing
    everything = json.dumps(told(listening))
    assert "Merula" not in everything
    assert "sails" not in everything


def test_what_is_known_already_is_not_told_again(listening):
    for _ in range(2):
        services.create(user=listening, text="Alice sails a boat called Merula.")
    assert len(told(listening, "memory.stored")) == 1


def test_archiving_is_told_once_with_its_reason(listening):
    made = services.create(user=listening, text="Alice sails a boat called Merula.")
    for _ in range(2):
        services.archive(user=listening, memory_id=made.id, reason="outdated")
    (payload,) = told(listening, "memory.archived")
    assert (payload["memory"], payload["reason"]) == (str(made.id), "outdated")


def test_what_fades_is_told(listening):
    faded = MemoryFactory(
        user=listening, importance=0.0, scored_at=NOW, created_at=NOW - timedelta(days=300)
    )
    scores.archive_faded(listening, now=NOW)
    assert [one["memory"] for one in told(listening, "memory.archived")] == [str(faded.id)]


def test_forgetting_is_told_by_ids(listening):
    made = services.create(user=listening, text="Alice sails a boat called Merula.")
    receipt = services.forget(user=listening, memory_id=made.id)
    (payload,) = told(listening, "memory.deleted")
    assert payload["memories"] == [str(made.id)]
    assert payload["receipt"] == str(receipt.id)


def test_a_causal_link_is_told_and_another_is_not(listening):
    one, other = MemoryFactory(user=listening), MemoryFactory(user=listening)
    for link_type, pair in (("because", (one, other)), ("refines", (other, one))):
        services.link(
            user=listening,
            source_id=pair[0].id,
            target_id=pair[1].id,
            link_type=link_type,
            reasoning="They say so.",
            author=MemoryLink.Author.PERSON,
            at=NOW,
        )
    (payload,) = told(listening, "causal.detected")
    assert (payload["relation"], payload["source"]) == ("because", str(one.id))


def test_a_merge_is_told_as_what_went_and_what_came(listening):
    parts = [
        services.create(user=listening, text="Alice sails on Sundays."),
        services.create(user=listening, text="Alice sails near Split."),
    ]
    services.merge(
        user=listening,
        memory_ids=[part.id for part in parts],
        text="Alice sails on Sundays near Split.",
    )
    gone = {one["memory"] for one in told(listening, "memory.archived")}
    assert gone == {str(part.id) for part in parts}
    assert len(told(listening, "memory.stored")) == 3


def test_a_failure_to_embed_is_told_although_nothing_is_stored(listening, monkeypatch):
    def away(texts):
        raise EmbeddingsUnavailable("The embedding model could not be loaded.")

    monkeypatch.setattr(embeddings, "embed", away)
    with pytest.raises(EmbeddingsUnavailable):
        services.create(user=listening, text="Alice sails a boat called Merula.")
    assert told(listening) == [{"segment": None, "code": "embeddings_unavailable"}]
    assert not Memory.objects.for_user(listening).exists()


def test_a_store_that_is_undone_is_not_told(listening, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError

    monkeypatch.setattr(scores, "rescore", fail)
    with pytest.raises(RuntimeError):
        services.create(user=listening, text="Alice sails a boat called Merula.")
    assert told(listening) == []


def test_a_recall_is_told_only_to_who_named_it(listening):
    made = services.create(user=listening, text="Alice sails a boat called Merula.")

    def ask():
        selectors.recall_context(listening, "What is the boat called?", budget_tokens=500, now=NOW)

    ask()
    assert told(listening, "recall.completed") == []
    named = ["recall.completed"]
    webhooks.create(user=listening, url="https://example.org/recalls", events=named)
    ask()
    (payload,) = told(listening, "recall.completed")
    assert [item["memory"] for item in payload["items"]] == [str(made.id)]
    assert payload["tokens"] <= payload["budget"] == 500
    assert "boat" not in json.dumps(payload)


def test_every_stage_of_a_recall_is_timed_and_its_shape_counted(listening):
    def observed():
        read = metrics.REGISTRY.get_sample_value
        stages = ("prepare", "embed", "candidates", "rank", "allocate", "render")
        name = "mira_recall_stage_seconds_count"
        return [
            *(read(name, {"stage": stage}) for stage in stages),
            read("mira_recall_total"),
            read("mira_recall_duration_seconds_count"),
            read("mira_recall_pool_count"),
            read("mira_recall_candidates_count"),
            read("mira_recall_tokens_used_count"),
            read("mira_recall_allocation_quality_count"),
        ]

    services.create(user=listening, text="Alice sails a boat called Merula.")
    before = observed()
    selectors.recall_context(listening, "What is the boat called?", budget_tokens=500, now=NOW)
    assert [now - then for now, then in zip(observed(), before, strict=True)] == [1.0] * 12


def test_storing_is_counted_by_the_memory(listening):
    def count():
        return metrics.REGISTRY.get_sample_value("mira_store_total")

    before = count()
    for _ in range(2):
        services.create(user=listening, text="Alice sails a boat called Merula.")
    assert count() == before + 1
