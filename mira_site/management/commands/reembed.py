"""Make vectors of another embedding model anew."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from conversations import reembedding as segments
from conversations.models import Segment
from memory import reembedding as memories
from memory.management import people
from memory.models import Memory
from mira_site.accounts.models import User
from mira_site.errors import MiraError
from mira_site.isolation import acting_as


class Command(BaseCommand):
    help = (
        "Read memories and segments anew whose vectors are by another embedding model. Beat does "
        "so by itself; this does it now. Broken off, it goes on where it stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", metavar="U", help="only this person (username)")
        parser.add_argument("--dry-run", action="store_true", help="say how many wait")

    def handle(self, *args: Any, **options: Any) -> str:
        users = people.chosen(options["user"])
        found, failed = [0, 0], 0
        for number, user in enumerate(users, start=1):
            self.stderr.write(f"{number}/{len(users)} {user.pk}")
            try:
                with acting_as(user.pk):
                    counts = _waiting(user) if options["dry_run"] else self._write(user)
            except (MiraError, DatabaseError) as error:
                failed += 1
                self.stderr.write(f"  {type(error).__name__}. Run it again for the rest.")
                continue
            found = [one + more for one, more in zip(found, counts, strict=True)]
        if failed:
            raise CommandError(f"{failed} of {len(users)} people could not be finished.")
        verb = "wait" if options["dry_run"] else "read anew"
        return f"{len(users)} people: {found[0]} memories and {found[1]} segments {verb}."

    def _write(self, user: User) -> tuple[int, int]:
        counts = []
        for write in (memories.write, segments.write):
            count = 0
            while some := write(user):
                count += some
                self.stderr.write(f"  {count}")
            counts.append(count)
        return counts[0], counts[1]


def _waiting(user: User) -> tuple[int, int]:
    rows = Memory.objects.for_user(user).filter(memories.of_another_model())
    return rows.count(), segments.waiting(Segment.objects.for_user(user)).count()
