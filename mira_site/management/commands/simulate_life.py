"""A month of talk in fast motion, and whether memory did what it should."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import asdict
from importlib import import_module
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from mira_site.accounts.models import User


class Command(BaseCommand):
    help = (
        "Live a simulated month with MIRA (30 use-days, a vacation, a scripted model) in an "
        "account of its own, which is erased afterwards, and check what must hold at its end."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=int, default=30, help="use-days (28 to 60)")
        parser.add_argument("--facts", type=int, default=300, help="facts told (100 to 300)")
        parser.add_argument("--seed", type=int, default=1, help="another seed, another story")
        parser.add_argument("--json", action="store_true", help="print the claims as JSON")
        parser.add_argument(
            "--force", action="store_true", help="even though there are people in this database"
        )

    def handle(self, *args: Any, **options: Any) -> str:
        try:
            # Not at the top: an installation without requirements-dev.txt has this command too.
            story = import_module("mira_site.simulation.story")
            life = import_module("mira_site.simulation.life")
            claims = import_module("mira_site.simulation.claims")
        except ModuleNotFoundError as error:
            raise CommandError(
                f"{error.name} is missing. This command needs the tests folder of the source and "
                "what requirements-dev.txt lists: pip install -r requirements-dev.txt"
            ) from error
        if User.objects.exists() and not options["force"]:
            raise CommandError(
                "There are people in this database. Their memories would not be touched; use "
                "--force to simulate beside them, or another MIRA_DATA_DIR."
            )
        try:
            told = story.tell(days=options["days"], facts=options["facts"], seed=options["seed"])
        except ValueError as error:
            raise CommandError(str(error)) from error
        started = time.monotonic()
        logging.disable(logging.INFO)  # a month of log lines would hide the days
        try:
            with life.lived(told, tell=self.stderr.write) as lived:
                judged = claims.judged(lived)
        finally:
            logging.disable(logging.NOTSET)
        took_s = time.monotonic() - started
        if options["json"]:
            self.stdout.write(json.dumps([asdict(one) for one in judged], indent=2))
        else:
            for one in judged:
                self.stdout.write(f"{'yes' if one.holds else 'NO '}  {one.name:<48} {one.found}")
                for line in () if one.holds else one.against:
                    self.stdout.write(f"       {line}")
        failed = sum(not one.holds for one in judged)
        if failed:
            raise CommandError(f"{failed} of {len(judged)} claims do not hold.")
        if options["json"]:
            return ""
        return (
            f"All {len(judged)} claims hold: {len(told.days)} use-days, {len(told.facts)} facts, "
            f"{took_s:.0f} s."
        )
