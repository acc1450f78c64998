"""What `manage.py check` warns of."""

from __future__ import annotations

import pytest

from mira_site import checks


@pytest.mark.parametrize(
    ("database_url", "has_keys", "warns"),
    [("", False, False), ("postgres://db/mira", True, False), ("postgres://db/mira", False, True)],
)
def test_a_database_elsewhere_without_keys_of_its_own_is_warned_of(
    settings, database_url, has_keys, warns
):
    settings.DATABASE_URL, settings.HAS_GIVEN_KEYS = database_url, has_keys
    found = checks.keys_of_a_database_elsewhere()
    assert [(one.id, "FIELD_ENCRYPTION_KEYS" in one.msg) for one in found] == (
        [("mira.W001", True)] if warns else []
    )
