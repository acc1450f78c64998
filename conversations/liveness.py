"""Says that a running turn's worker lives, and hears when the turn shall stop."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

import structlog
from django.db import DatabaseError, connection
from django.utils import timezone

from conversations.constants import HEARTBEAT_S, STOP_POLL_S
from conversations.models import Turn
from mira_site.isolation import acting_as
from mira_site.owned import OwnedQuerySet

log = structlog.get_logger(__name__)


class Watch:
    """A thread for the length of a turn: writes the heartbeat and polls for the wish to stop.

    It has a database connection of its own, so a turn that waits for the model is still alive.
    """

    def __init__(self, turn: Turn) -> None:
        self._user_id, self._turn_id, self._attempt = turn.user_id, turn.pk, turn.attempt
        self._over = threading.Event()
        self._stop_wanted = threading.Event()
        self._thread = threading.Thread(target=self._run, name="turn-watch", daemon=True)

    def should_stop(self) -> bool:
        return self._stop_wanted.is_set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        beaten_at = time.monotonic()
        with acting_as(self._user_id):
            while not self._over.wait(STOP_POLL_S):
                try:
                    if time.monotonic() - beaten_at >= HEARTBEAT_S:
                        beaten_at = time.monotonic()
                        self._rows().update(heartbeat_at=timezone.now())
                    if self._rows().filter(stop_requested_at__isnull=False).exists():
                        self._stop_wanted.set()
                except DatabaseError as error:
                    log.warning("turn.heartbeat_missed", reason=type(error).__name__)
                finally:
                    connection.close()

    def _rows(self) -> OwnedQuerySet:
        return Turn.objects.for_user(self._user_id).filter(
            pk=self._turn_id, attempt=self._attempt, status=Turn.Status.RUNNING
        )
