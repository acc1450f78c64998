"""Vectors that another embedding model made, made anew by the present one.

Vectors of two models mean nothing to each other: until a memory's turn has come, it is found by its
words and names and not by its meaning. Its own row tells whether it waits, because passages and
token vectors are only ever written with it. A model of other dimensions needs a migration first.
"""

from __future__ import annotations

import time
from datetime import datetime
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from memory import passages, storage, token_vectors, work
from memory.constants import REEMBED_BATCH, REEMBED_SLICE_S
from memory.models import Memory, Work
from mira_site import embeddings
from mira_site.accounts.models import User

log = structlog.get_logger(__name__)

_KIND = Work.Kind.REEMBED


def run(user: User, job: Work, now: datetime) -> None:
    """Make them anew for a while; what is left then is due again at once.

    Raises EmbeddingsUnavailable; what was written until then stays.
    """
    started = time.monotonic()
    count = 0
    while time.monotonic() - started < REEMBED_SLICE_S and (written := write(user)):
        count += written
    log.info("memories.reembedded", memories=count)
    if is_left(user):
        work.put_back(job, at=now)
    else:
        work.done(job, at=now)


def write(user: User) -> int:
    """Make those of some memories anew, archived ones too; returns how many were looked at.

    They are embedded before the transaction, and one that was edited meanwhile is left as it is.
    Raises EmbeddingsUnavailable.
    """
    rows = Memory.objects.for_user(user).filter(of_another_model())
    found = list(rows.order_by("-created_at", "id").values_list("id", "text")[:REEMBED_BATCH])
    if not found:
        return 0
    vectors, cuts = passages.embed([text for _, text in found])
    texts = dict(found)
    made = {key: row for row, (key, _) in enumerate(found)}
    with transaction.atomic():
        storage.lock(user)
        rows = rows.filter(id__in=texts).only("id", "text", "embedding", "embedding_model")
        same = [memory for memory in rows.order_by("id") if memory.text == texts[memory.id]]
        for memory in same:
            memory.embedding = vectors[made[memory.id]]
            memory.embedding_model = embeddings.model_id()
        Memory.objects.for_user(user).bulk_update(same, ["embedding", "embedding_model"])
        passages.store(user, same, {memory.id: cuts[made[memory.id]] for memory in same})
        token_vectors.write(user, same)
    return len(found)


def of_another_model() -> Q:
    """Memories whose vectors are not by the present model; in two halves, for the index's sake.

    Raises EmbeddingsUnavailable.
    """
    present = embeddings.model_id()
    return Q(embedding_model__lt=present) | Q(embedding_model__gt=present)


def is_left(user: User) -> bool:
    return bool(Memory.objects.for_user(user).filter(of_another_model()).exists())


def users_waiting() -> list[UUID]:
    """Ids of the users with such memories, and no work on them yet. Runs inside `all_users`."""
    waits = Memory.objects.filter(of_another_model(), user=OuterRef("pk"))
    at_work = Work.objects.filter(~Q(status=Work.Status.DONE), user=OuterRef("pk"), kind=_KIND)
    rows = User.objects.filter(Exists(waits), ~Exists(at_work), is_active=True)
    return list(rows.order_by("pk").values_list("pk", flat=True))


def make_due(user: User, *, at: datetime) -> None:
    work.make_due(user, _KIND, embeddings.model_id(), at, again=True)
