"""prepare: what must be done before the web server of this release starts."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from mira_site.accounts import selectors as accounts
from mira_site.serving import SETUP_LINK


class Command(BaseCommand):
    help = (
        "Bring the database up to date, and collect the files of the pages with --static. "
        "While there is no account, the one-time link that makes the first is kept in the data "
        "directory, in setup-link."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--static", action="store_true", help="Collect the static files too.")

    def handle(self, *args: Any, **options: Any) -> None:
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if plan:
            self.stdout.write(f"Bringing the database up to date, {len(plan)} steps.")
            call_command("migrate", interactive=False, verbosity=0)
        if options["static"]:
            self.stdout.write("Collecting the files of the pages.")
            call_command("collectstatic", interactive=False, verbosity=0, clear=True)
        self._keep_setup_link()

    def _keep_setup_link(self) -> None:
        link = settings.MIRA_DATA_DIR / SETUP_LINK
        path = accounts.setup_link_path()
        if path is None:
            link.unlink(missing_ok=True)
            return
        link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        link.touch(mode=0o600)
        link.write_text(path, encoding="utf-8")
