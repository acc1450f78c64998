"""Write fingerprints and passages of memories that have none yet."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from django.utils import timezone

from memory import deriving
from memory.management import people
from mira_site.errors import MiraError
from mira_site.isolation import acting_as


class Command(BaseCommand):
    help = "Write what is derived from memories' texts where it is missing: fingerprints, passages."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", metavar="U", help="only this person (username)")
        parser.add_argument("--dry-run", action="store_true", help="say what is missing")

    def handle(self, *args: Any, **options: Any) -> str:
        users = people.chosen(options["user"])
        fingerprints, passages, token_vectors, failed = 0, 0, 0, 0
        for number, user in enumerate(users, start=1):
            self.stderr.write(f"{number}/{len(users)} {user.pk}")
            try:
                with acting_as(user.pk):
                    found = (
                        deriving.missing(user)
                        if options["dry_run"]
                        else deriving.write_missing(user, at=timezone.now())
                    )
            except (MiraError, DatabaseError) as error:
                failed += 1
                self.stderr.write(f"  {type(error).__name__}. Run it again for the rest.")
                continue
            fingerprints += found.fingerprints
            passages += found.passages
            token_vectors += found.token_vectors
        if failed:
            raise CommandError(f"{failed} of {len(users)} people could not be finished.")
        verb = "missing" if options["dry_run"] else "written"
        return (
            f"{len(users)} people: {fingerprints} fingerprints, {token_vectors} token vectors"
            f" and the passages of {passages} long memories {verb}."
        )
