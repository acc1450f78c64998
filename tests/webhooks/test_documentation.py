"""The example of docs/operations.md checks what MIRA really sends, and refuses what it does not."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from django.utils import timezone

from mira_site.webhooks import sending, services
from mira_site.webhooks.types import EventType

pytestmark = pytest.mark.django_db

DOCS = Path(__file__).parent.parent.parent / "docs" / "operations.md"


@pytest.fixture
def is_from_mira() -> Callable[..., bool]:
    (example,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Callable[..., bool]] = {}
    exec(example, names)  # what a reader would paste
    return names["is_from_mira"]


@pytest.fixture
def heard(as_alice, endpoint, receiver):
    services.emit(as_alice, EventType.MEMORY_STORED, {"memory": "grüße"})
    sending.run(as_alice, endpoint.endpoint.id)
    return receiver.heard[0]


def test_a_delivery_is_believed(heard, endpoint, is_from_mira):
    assert is_from_mira(endpoint.secret, heard.headers, heard.body)


def test_another_body_secret_or_time_is_not(heard, endpoint, is_from_mira):
    assert not is_from_mira(endpoint.secret, heard.headers, heard.body + b" ")
    assert not is_from_mira("whsec_other", heard.headers, heard.body)
    later = str(int(heard.headers["X-MIRA-Timestamp"]) + 1)
    changed = {**dict(heard.headers), "X-MIRA-Timestamp": later}
    assert not is_from_mira(endpoint.secret, changed, heard.body)
    assert not is_from_mira(endpoint.secret, {}, heard.body)


def test_a_delivery_that_is_played_again_after_five_minutes_is_not(heard, endpoint, is_from_mira):
    with time_machine.travel(timezone.now() + timedelta(minutes=6)):
        assert not is_from_mira(endpoint.secret, heard.headers, heard.body)


def test_every_event_is_documented():
    text = DOCS.read_text(encoding="utf-8")
    assert [name for name in EventType.values if f"`{name}`" not in text] == []
