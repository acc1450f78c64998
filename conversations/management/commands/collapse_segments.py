"""Collapse segments by hand."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from conversations import collapse
from mira_site.accounts import selectors as accounts
from mira_site.errors import MiraError
from mira_site.isolation import acting_as, all_users


class Command(BaseCommand):
    help = "Collapse the segments that are due into traces and memories."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", metavar="U", help="only this person (username)")
        parser.add_argument(
            "--now", action="store_true", help="do not wait for segments to go quiet"
        )
        parser.add_argument("--dry-run", action="store_true", help="say what would be done")

    def handle(self, *args: Any, **options: Any) -> str:
        only = accounts.user_named(options["user"]).pk if options["user"] else None
        with all_users("collapse_segments command"):
            due = collapse.due(at=timezone.now(), quiet=not options["now"])
        due = [(user_id, segment_id) for user_id, segment_id in due if only in (None, user_id)]
        if options["dry_run"]:
            return f"{len(due)} segments would collapse."
        failed = 0
        for number, (user_id, segment_id) in enumerate(due, start=1):
            self.stderr.write(f"{number}/{len(due)} {segment_id}")
            try:
                with acting_as(user_id):
                    collapse.run(
                        user=accounts.user(user_id), segment_id=segment_id, quiet=not options["now"]
                    )
            except MiraError as error:
                failed += 1
                self.stderr.write(f"  {error} It stays due.")
        if failed:
            raise CommandError(
                f"{failed} of {len(due)} segments could not collapse; they stay due."
            )
        return f"{len(due)} segments collapsed."
