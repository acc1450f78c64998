"""Measure recall on dialogues in the format of LoCoMo."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from memory import benchmarking, ranking
from mira_site.errors import MiraError

SHORT = {
    "recall@": "R@",
    "session_recall@": "S@",
    "all_within_": "in ",
    "all_shown_in_": "shown ",
    "lost_by_": "",
    "lost_": "",
}


class Command(BaseCommand):
    help = (
        "Store dialogues turn by turn, ask their questions and print how much of the evidence is"
        " recalled. Nothing of it stays in the database, and no model is asked."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--data", metavar="FILE", nargs="+", type=Path, required=True, help="LoCoMo dialogues"
        )
        parser.add_argument(
            "--without",
            metavar="SIGNAL",
            nargs="+",
            default=[],
            choices=[*ranking.WEIGHTS, "each"],
            help=f"signals of the ranking that count nothing ({', '.join(ranking.WEIGHTS)});"
            " `each`: a table of what every one of them is worth",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> str:
        given = options["without"]
        names = [[], *([one] for one in ranking.WEIGHTS)] if "each" in given else [given]
        without = [frozenset(several) for several in names]
        try:
            dialogues = [benchmarking.read(path) for path in options["data"]]
            asked = {
                one.name: benchmarking.outcomes(one, self.stderr.write, without=without)
                for one in dialogues
            }
        except MiraError as error:
            raise CommandError(str(error)) from error
        reports = {
            ", ".join(several): benchmarking.report(
                {name: found[place] for name, found in asked.items()}
            )
            for place, several in enumerate(names)
        }
        if len(reports) > 1:
            return json.dumps(reports, indent=2) if options["json"] else _ablation(reports)
        (report,) = reports.values()
        return json.dumps(report, indent=2) if options["json"] else _table(report)


def _ablation(reports: Mapping[str, Mapping[str, Any]]) -> str:
    rows = {f"without {name}" if name else "all": one["all"] for name, one in reports.items()}
    return "\n".join(_rows(rows, width=24))


def _table(report: Mapping[str, Any]) -> str:
    rows = {"all": report["all"], **report["categories"], **report["dialogues"]}
    lines = _rows(rows, width=12)
    latency = report["latency_ms"]
    lines.append(f"a recall takes {latency['p50']} ms (p50), {latency['p95']} ms (p95)")
    lines.append(
        "in N: all evidence within N tokens of turn lines, in rank order;"
        " shown N: in the context as MIRA renders it;\nbudget, rank, not_found: evidence that"
        " is not in 2000, cut by the budget, below rank 50, not among what came up"
    )
    return "\n".join(lines)


def _rows(rows: Mapping[str, Mapping[str, float]], *, width: int) -> list[str]:
    names = [name for name in next(iter(rows.values())) if name != "questions"]
    lines = [f"{'':{width}} questions " + " ".join(f"{_short(name):>10}" for name in names)]
    for title, means in rows.items():
        figures = " ".join(f"{means[name]:10.3f}" for name in names)
        lines.append(f"{title:{width}} {means['questions']:9} {figures}")
    return lines


def _short(name: str) -> str:
    for long, short in SHORT.items():
        if name.startswith(long):
            return short + name.removeprefix(long)
    return name
