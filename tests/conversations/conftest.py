from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from mira_site import isolation
from mira_site.accounts.models import User
from mira_site.celery import app


@pytest.fixture
def me(alice: User) -> Iterator[User]:
    """Alice, and her rows are the ones that exist."""
    with isolation.acting_as(alice.pk):
        yield alice


@pytest.fixture
def api(alice: User) -> APIClient:
    """Alice over HTTP, by session."""
    client = APIClient()
    client.force_login(alice)
    return client


@pytest.fixture
def stranger(bob: User) -> APIClient:
    """Bob over HTTP."""
    client = APIClient()
    client.force_login(bob)
    return client


@pytest.fixture
def redis_away(settings: Settings) -> Iterator[None]:
    """Nothing listens where the events and the queue should be."""
    settings.REDIS_URL = "unix:///nowhere/redis.sock?db=0"
    nowhere = "redis+socket:///nowhere/redis.sock"
    changes = {"task_always_eager": False, "broker_url": nowhere, "broker_write_url": nowhere}
    before = {name: app.conf[name] for name in changes}
    pools = app._pool, app.amqp._producer_pool
    app._pool = app.amqp._producer_pool = None
    app.conf.update(changes)
    yield
    app.conf.update(before)
    app._pool, app.amqp._producer_pool = pools
