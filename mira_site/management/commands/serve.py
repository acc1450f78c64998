"""serve: everything MIRA needs on this machine, until Ctrl-C."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from mira_site import serving
from mira_site.errors import DependencyError


class Command(BaseCommand):
    help = (
        "Start PostgreSQL and Redis (unless DATABASE_URL and REDIS_URL are set), the web server, "
        "the workers and the scheduler, and keep them running. Ctrl-C stops everything. "
        "HOST, PORT and MIRA_DATA_DIR change where."
    )
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            serving.serve()
        except DependencyError as error:
            raise CommandError(str(error)) from error
