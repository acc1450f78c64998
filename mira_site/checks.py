"""What `manage.py check` says about settings that work, but not for long."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core import checks


@checks.register(checks.Tags.security)
def keys_of_a_database_elsewhere(**kwargs: Any) -> list[checks.CheckMessage]:
    """A database that others share, or that outlives this folder, needs keys that do so too."""
    if not settings.DATABASE_URL or settings.HAS_GIVEN_KEYS:
        return []
    return [
        checks.Warning(
            "DATABASE_URL is set, but FIELD_ENCRYPTION_KEYS is not: what is encrypted can be read "
            f"only with the key that this machine made for itself under {settings.MIRA_DATA_DIR}.",
            hint="Set FIELD_ENCRYPTION_KEYS on every machine to what stands in the file "
            "field_encryption_key there, and keep a copy of it.",
            id="mira.W001",
        )
    ]
