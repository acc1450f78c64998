"""Encrypt everything stored with the first key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from mira_site import crypto
from mira_site.isolation import all_users


class Command(BaseCommand):
    help = (
        "Encrypt everything that is stored encrypted with the first of FIELD_ENCRYPTION_KEYS. To"
        " change the key: put a new one in front of the old (python -c 'from cryptography.fernet"
        " import Fernet; print(Fernet.generate_key().decode())'), start every process with both,"
        " run this, then take the old one out. Without the setting the old key is the file"
        " secrets/field_encryption_key in the data directory."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="say what would be done")

    def handle(self, *args: Any, **options: Any) -> str:
        changed, unreadable = 0, 0
        with all_users("rotate_encryption_keys command"):
            for table in crypto.encrypted_tables():
                rows = 0
                for keys in crypto.keys_of(table):
                    for key in keys:
                        done = crypto.rotate(table, key, dry_run=options["dry_run"])
                        changed += done.changed
                        unreadable += done.unreadable
                    rows += len(keys)
                    self.stderr.write(f"{table.name}: {rows} rows")
        verb = "would be encrypted" if options["dry_run"] else "encrypted"
        summary = f"{changed} values {verb} with the first key."
        if unreadable:
            raise CommandError(f"{summary} {unreadable} could not be read. {crypto.UNREADABLE}")
        return summary
