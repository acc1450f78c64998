"""Without a model only what says the same is merged."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.utils import timezone

from memory import twins
from memory.models import Memory, Merge, Trust
from mira_site import isolation
from mira_site.accounts.models import User
from tests.factories import MemoryFactory

pytestmark = pytest.mark.usefixtures("embedder")

SHORT = "Alice prefers a window seat on night trains."
FULL = "Alice really prefers window seats on her night trains."


def fold(user: User, *rows: Memory) -> list[Merge]:
    return twins.fold(user, [row.id for row in rows], at=timezone.now())


def live(user: User) -> list[str]:
    return sorted(Memory.objects.for_user(user).live().values_list("text", flat=True))


def test_twins_become_one(as_alice: User) -> None:
    one = MemoryFactory(user=as_alice, text=SHORT)
    MemoryFactory(user=as_alice, text=FULL)
    (made,) = fold(as_alice, one)
    assert made.author == "rule"
    assert len(live(as_alice)) == 1
    assert fold(as_alice, made.result) == []


@pytest.mark.parametrize(
    "text",
    [
        "Alice prefers aisle seats on night trains.",
        "Anna prefers a window seat on night trains.",
        "Alice prefers no window seat on night trains.",
    ],
)
def test_what_is_only_alike_stays_apart(as_alice: User, text: str) -> None:
    one = MemoryFactory(user=as_alice, text=SHORT)
    MemoryFactory(user=as_alice, text=text)
    assert fold(as_alice, one) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"trust": Trust.OUTSIDE},
        {"happens_at": datetime(2027, 1, 1, tzinfo=UTC)},
        {"valid_until": datetime(2026, 1, 1, tzinfo=UTC)},
        {"muted_at": datetime(2026, 1, 1, tzinfo=UTC)},
    ],
)
def test_twins_that_differ_otherwise_stay_apart(as_alice: User, fields: dict[str, object]) -> None:
    one = MemoryFactory(user=as_alice, text=SHORT)
    MemoryFactory(user=as_alice, text=FULL, **fields)
    assert fold(as_alice, one) == []
    assert live(as_alice) == sorted([SHORT, FULL])


def test_somebody_elses_twin_is_nobodys(as_alice: User, bob: User) -> None:
    one = MemoryFactory(user=as_alice, text=SHORT)
    with isolation.acting_as(bob.pk):
        MemoryFactory(user=bob, text=FULL)
        assert fold(bob, one) == []
    assert fold(as_alice, one) == []
