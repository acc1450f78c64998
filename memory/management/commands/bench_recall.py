"""Measure recall on dialogues in the format of LoCoMo."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory import benchmarking
from mira_site.errors import MiraError

SHORT = {"recall@": "R@", "session_recall@": "S@", "all_within_": "in ", "all_shown_in_": "shown "}


class Command(BaseCommand):
    help = (
        "Store dialogues turn by turn, ask their questions and print how much of the evidence is"
        " recalled. Nothing of it stays in the database, and no model is asked."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--data", metavar="FILE", nargs="+", type=Path, required=True, help="LoCoMo dialogues"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> str:
        try:
            dialogues = [benchmarking.read(path) for path in options["data"]]
            of_dialogues = {
                one.name: benchmarking.outcomes(one, self.stderr.write) for one in dialogues
            }
        except MiraError as error:
            raise CommandError(str(error)) from error
        report = benchmarking.report(of_dialogues)
        return json.dumps(report, indent=2) if options["json"] else _table(report)


def _table(report: Mapping[str, Any]) -> str:
    rows = {"all": report["all"], **report["categories"], **report["dialogues"]}
    names = [name for name in report["all"] if name != "questions"]
    lines = [f"{'':12} questions " + " ".join(f"{_short(name):>10}" for name in names)]
    for title, means in rows.items():
        figures = " ".join(f"{means[name]:10.3f}" for name in names)
        lines.append(f"{title:12} {means['questions']:9} {figures}")
    latency = report["latency_ms"]
    lines.append(f"a recall takes {latency['p50']} ms (p50), {latency['p95']} ms (p95)")
    lines.append(
        "in N: all evidence within N tokens of turn lines, in rank order;"
        " shown N: in the context as MIRA renders it"
    )
    return "\n".join(lines)


def _short(name: str) -> str:
    for long, short in SHORT.items():
        if name.startswith(long):
            return short + name.removeprefix(long)
    return name
