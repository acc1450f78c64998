"""Settings of the test run: its own services and data, no model, nothing from .env."""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from mira_site import embedded

# Named here and made by tests/conftest.py; the workers of pytest-xdist inherit the name.
if not Path(os.environ.get("MIRA_TEST_DATA_DIR", "")).is_absolute():
    name = f"mira-test-{secrets.token_hex(6)}"
    os.environ["MIRA_TEST_DATA_DIR"] = str(Path(tempfile.gettempdir()) / name)
# Each worker has a Redis database of its own, as it has a PostgreSQL database (pytest-django).
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw-1").removeprefix("gw")) + 1
_addresses = embedded.urls(Path(os.environ["MIRA_TEST_DATA_DIR"]))
os.environ.update(
    {
        "MIRA_DATA_DIR": os.environ["MIRA_TEST_DATA_DIR"],
        "SECRET_KEY": "only-for-tests-" + "x" * 40,
        "REDIS_URL": _addresses.redis_url.replace("?db=0", f"?db={_worker}"),
        "EMAIL_URL": "console:",
        # Empty is unset, and a value in the environment or .env does not come through.
        **dict.fromkeys(
            (
                "DATABASE_URL",
                "FIELD_ENCRYPTION_KEYS",
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_BASE_URL",
                "MIRA_MODEL",
                "MIRA_FAST_MODEL",
                "MIRA_BACKGROUND_MODEL",
                "MIRA_MODELS_ALLOWED",
                "METRICS_TOKEN",
                "PUBLIC_URL",
                "SIGNUP",
                "LOG_FORMAT",
                "DEBUG",
                "WEBHOOK_PRIVATE_HOSTS",
            ),
            "",
        ),
    }
)

from mira_site.settings import *  # noqa: E402, F403

CELERY_TASK_ALWAYS_EAGER = True
CELERY_TASK_EAGER_PROPAGATES = True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {  # no manifest: pages render without collectstatic
    **STORAGES,  # noqa: F405
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
LLM_RETRY_BASE_S = 0.01
# A cached logger keeps the processors it began with, and escapes structlog.testing.
LOGGING = {**LOGGING, "cached": False}  # noqa: F405
