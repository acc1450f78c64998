"""Models and migrations agree."""

from __future__ import annotations

from django.core.management import call_command


def test_every_change_of_a_model_has_its_migration(db):
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
