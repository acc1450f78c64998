from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from mira_site import isolation
from mira_site.accounts.models import User
from mira_site.webhooks import services
from mira_site.webhooks.services import NewEndpoint
from tests.webhooks.receiver import Receiver


@pytest.fixture
def receiver(settings: Settings) -> Iterator[Receiver]:
    """It is on this machine, which only the operator can allow."""
    settings.WEBHOOK_PRIVATE_HOSTS = ["127.0.0.1"]
    with Receiver() as listening:
        yield listening


@pytest.fixture
def as_alice(alice: User) -> Iterator[User]:
    with isolation.acting_as(alice.pk):
        yield alice


@pytest.fixture
def endpoint(as_alice: User, receiver: Receiver) -> NewEndpoint:
    return services.create(user=as_alice, url=receiver.url, events=["*"])
