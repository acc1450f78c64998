"""A conversation of Alice's, and her scope."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from rest_framework.test import APIClient

from memory.types import SourceMessage
from mira_site import isolation
from mira_site.accounts.models import User

SAID_AT = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)  # a Saturday


@dataclass
class Segment:
    """Messages of one segment, a minute apart; `said(*texts)` are the person's."""

    id: UUID = field(default_factory=uuid4)
    at: datetime = SAID_AT
    messages: list[SourceMessage] = field(default_factory=list)

    def said(self, *texts: str, role: str = "user") -> Segment:
        for text in texts:
            self.messages.append(
                SourceMessage(
                    message_id=uuid4(),
                    segment_id=self.id,
                    role=role,
                    text=text,
                    said_at=self.at + timedelta(minutes=len(self.messages)),
                )
            )
        return self

    def answered(self, *texts: str) -> Segment:
        return self.said(*texts, role="assistant")


@pytest.fixture
def segment() -> Segment:
    return Segment()


@pytest.fixture
def as_alice(alice: User) -> Iterator[User]:
    """Alice, in whose scope the test runs."""
    alice.first_name = "Alice"
    alice.timezone = "Europe/Berlin"
    alice.save(update_fields=["first_name", "timezone"])
    with isolation.acting_as(alice.pk):
        yield alice


@pytest.fixture
def api(alice: User) -> APIClient:
    """The API as Alice, signed in."""
    client = APIClient()
    client.force_login(alice)
    return client


@pytest.fixture
def bobs_api(bob: User) -> APIClient:
    client = APIClient()
    client.force_login(bob)
    return client


@pytest.fixture
def new_segment() -> type[Segment]:
    return Segment
