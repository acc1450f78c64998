"""What the commands share that take segments through their collapse by hand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations import collapse
from mira_site.accounts import selectors as accounts
from mira_site.errors import MiraError
from mira_site.isolation import acting_as, all_users


class SegmentCommand(BaseCommand, ABC):
    """Finds segments over all users, runs each as its owner, and says what came of it.

    A subclass names itself for the log, finds (user id, segment id), and completes the sentences
    "3 segments …".
    """

    reason: str
    would: str
    done: str
    failed: str

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", metavar="U", help="only this person (username)")
        parser.add_argument("--dry-run", action="store_true", help="say what would be done")

    @abstractmethod
    def find(self, options: dict[str, Any]) -> Sequence[tuple[UUID, UUID]]:
        """The segments to run, in order. Called inside `all_users`."""

    def handle(self, *args: Any, **options: Any) -> str:
        only = _user_id(options["user"])
        with all_users(self.reason):
            found = self.find(options)
        found = [(user_id, segment_id) for user_id, segment_id in found if only in (None, user_id)]
        if options["dry_run"]:
            return f"{len(found)} segments {self.would}."
        done, failed = 0, 0
        for number, (user_id, segment_id) in enumerate(found, start=1):
            self.stderr.write(f"{number}/{len(found)} {segment_id}")
            try:
                with acting_as(user_id):
                    ended = collapse.run(
                        user=accounts.user(user_id),
                        segment_id=segment_id,
                        quiet=not options.get("now", False),
                    )
                done += ended is not None
            except MiraError as error:
                failed += 1
                self.stderr.write(f"  {error} It stays due.")
        if failed:
            raise CommandError(f"{failed} of {len(found)} segments {self.failed}; they stay due.")
        return f"{done} segments {self.done}."


def _user_id(name: str | None) -> UUID | None:
    try:
        return accounts.user_named(name).pk if name else None
    except MiraError as error:
        raise CommandError(str(error)) from error
