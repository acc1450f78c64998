"""The run's own PostgreSQL and Redis, and what most tests start from.

One PostgreSQL and one Redis serve the whole run, under a temporary data directory that
settings_test.py names. The first process starts them; the workers of pytest-xdist inherit the
name, and each has a database of its own in both.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from django.core.cache import cache
from pytest_django import Settings

from mira_site import embedded, embeddings, isolation, processes
from mira_site.accounts.models import User
from tests import messages_api
from tests.fake_anthropic import FakeAnthropic

_running: list[tuple[processes.Command, subprocess.Popen[bytes]]] = []


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    if is_worker or config.option.collectonly:
        return
    data_dir = Path(os.environ["MIRA_TEST_DATA_DIR"])
    embedded.prepare_postgres(data_dir, may_create_databases=True)
    embedded.prepare_redis(data_dir)
    log = (data_dir / "services.log").open("wb")
    commands = (
        embedded.postgres(data_dir, durable=False),
        embedded.redis_server(data_dir, durable=False),
    )
    _running.extend((command, processes.spawn(command, output=log)) for command in commands)
    addresses = embedded.urls(data_dir)
    embedded.wait_until(lambda: embedded.postgres_is_up(data_dir), name="PostgreSQL")
    embedded.wait_until(lambda: embedded.redis_answers(addresses.redis_url), name="Redis")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole servers and browsers first: what takes long shall not be left to one worker alone."""
    items.sort(key=lambda item: "flows" not in item.path.parts)


def pytest_unconfigure() -> None:
    if not _running:
        return
    for command, process in reversed(_running):
        processes.end(process, command, grace_s=10)
    _running.clear()
    embedded.remove(Path(os.environ["MIRA_TEST_DATA_DIR"]))


@pytest.fixture(autouse=True)
def _empty_redis() -> Iterator[None]:
    """Rate limits, queues and event streams of one test are not those of the next."""
    yield
    cache.clear()  # the whole Redis database, which is this worker's own


@pytest.fixture(scope="session")
def embedder() -> None:
    """The real embedding model, loaded before the test and not within its time."""
    embeddings.embed_one("warm")


@pytest.fixture
def alice(db: None) -> User:
    return User.objects.create_user("alice", "alice@example.org", "alice-password-1")


@pytest.fixture
def bob(db: None) -> User:
    return User.objects.create_user("bob", "bob@example.org", "bob-password-1")


@pytest.fixture
def staff(db: None) -> User:
    return User.objects.create_superuser("staff", "staff@example.org", "staff-password-1")


@pytest.fixture
def acting() -> Callable[[User], AbstractContextManager[None]]:
    """`with acting(alice):` rows of Alice exist, and no others."""
    return lambda user: isolation.acting_as(user.pk)


@pytest.fixture
def fake_anthropic(settings: Settings) -> Iterator[FakeAnthropic]:
    """A provider on this machine, configured; each tier has a model of its own."""
    with FakeAnthropic() as fake:
        settings.ANTHROPIC_BASE_URL = fake.url
        settings.MIRA_MODEL = messages_api.REPLY_MODEL
        settings.MIRA_FAST_MODEL = messages_api.FAST_MODEL
        settings.MIRA_BACKGROUND_MODEL = messages_api.BACKGROUND_MODEL
        yield fake
