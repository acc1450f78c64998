"""The retry sweep: read for memories what a collapse has left unread."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from conversations import collapse
from mira_site.accounts import selectors as accounts
from mira_site.errors import MiraError
from mira_site.isolation import acting_as, all_users


class Command(BaseCommand):
    help = (
        "Take up again the collapse of segments that were not read for memories, "
        "without waiting for their next attempt."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", metavar="U", help="only this person (username)")
        parser.add_argument("--dry-run", action="store_true", help="say what would be done")

    def handle(self, *args: Any, **options: Any) -> str:
        only = _user_id(options["user"])
        with all_users("extract_memories command"):
            left = collapse.unread(at=timezone.now())
        left = [(user_id, segment_id) for user_id, segment_id in left if only in (None, user_id)]
        if options["dry_run"]:
            return f"{len(left)} segments would be read for memories."
        read, failed = 0, 0
        for number, (user_id, segment_id) in enumerate(left, start=1):
            self.stderr.write(f"{number}/{len(left)} {segment_id}")
            try:
                with acting_as(user_id):
                    done = collapse.run(user=accounts.user(user_id), segment_id=segment_id)
                read += done is not None
            except MiraError as error:
                failed += 1
                self.stderr.write(f"  {error} It stays due.")
        if failed:
            raise CommandError(
                f"{failed} of {len(left)} segments could not be read; they stay due."
            )
        return f"{read} segments read for memories."


def _user_id(name: str | None) -> object:
    try:
        return accounts.user_named(name).pk if name else None
    except MiraError as error:
        raise CommandError(str(error)) from error
