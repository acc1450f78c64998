"""Collapse segments by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.core.management.base import CommandParser
from django.utils import timezone

from conversations import collapse
from conversations.management.segments import SegmentCommand


class Command(SegmentCommand):
    help = "Collapse the segments that are due into traces and memories."
    reason = "collapse_segments command"
    would = "would collapse"
    done = "collapsed"
    failed = "could not collapse"

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--now", action="store_true", help="do not wait for segments to go quiet"
        )

    def find(self, options: dict[str, Any]) -> Sequence[tuple[UUID, UUID]]:
        return collapse.due(at=timezone.now(), quiet=not options["now"])
