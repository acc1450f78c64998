"""Score memories by hand."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, transaction
from django.utils import timezone

from memory import scores
from memory.management import people
from mira_site.accounts.models import User
from mira_site.errors import MiraError
from mira_site.isolation import acting_as


class Command(BaseCommand):
    help = "Bring the importance of memories up to date, and archive what has faded or expired."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", metavar="U", help="only this person (username)")
        parser.add_argument("--dry-run", action="store_true", help="say what would change")

    def handle(self, *args: Any, **options: Any) -> str:
        users = people.chosen(options["user"])
        changed, archived, failed = 0, 0, 0
        for number, user in enumerate(users, start=1):
            self.stderr.write(f"{number}/{len(users)} {user.pk}")
            try:
                rescored, gone = _score(user, is_rehearsal=options["dry_run"])
            except (MiraError, DatabaseError) as error:
                failed += 1
                self.stderr.write(f"  {type(error).__name__}. Nothing of theirs was changed.")
                continue
            changed += rescored
            archived += gone.faded + gone.expired
        if failed:
            raise CommandError(f"{failed} of {len(users)} people could not be scored.")
        verb = "would change" if options["dry_run"] else "changed"
        return f"{len(users)} people: {changed} scores {verb}, {archived} memories to the archive."


def _score(user: User, *, is_rehearsal: bool) -> tuple[int, scores.Archived]:
    """Scores changed, memories archived; a rehearsal is rolled back."""
    now = timezone.now()
    with acting_as(user.pk), transaction.atomic():
        outcome = scores.rescore(user, now=now), scores.archive_faded(user, now=now)
        transaction.set_rollback(is_rehearsal)
    return outcome
