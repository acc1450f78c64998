from __future__ import annotations

from collections.abc import Iterator

import pytest

from mira_site import isolation
from mira_site.accounts.models import User


@pytest.fixture
def as_alice(alice: User) -> Iterator[User]:
    """Alice, in whose scope the test runs."""
    alice.first_name, alice.timezone = "Alice", "Europe/Berlin"
    alice.save(update_fields=["first_name", "timezone"])
    with isolation.acting_as(alice.pk):
        yield alice
