"""Calls that change nothing, done side by side."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context

from mira_site.llm.types import ToolCall
from toolbox.constants import CALLS_AT_ONCE
from toolbox.execution import execute
from toolbox.types import ToolContext, ToolOutcome


def side_by_side(
    calls: Sequence[tuple[ToolCall, str]],
    context: ToolContext,
    *,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, ToolOutcome | None]]:
    """Do calls (with the ids of their results), CALLS_AT_ONCE at most at a time.

    Yields (place, None) when a call begins and (place, outcome) when it has ended, as it happens.
    Once stopped, those that have not begun are left. Whoever drops the iterator ends the calls.
    """
    waiting = deque(range(len(calls)))
    running: dict[Future[ToolOutcome], int] = {}
    dropped = threading.Event()

    def is_over() -> bool:
        return dropped.is_set() or should_stop()

    with ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="tools") as pool:
        try:
            while waiting or running:
                while waiting and len(running) < CALLS_AT_ONCE and not should_stop():
                    place = waiting.popleft()
                    yield place, None
                    call, result_id = calls[place]
                    # The scope of the person, and what logs are bound to, are context variables.
                    running[
                        pool.submit(
                            copy_context().run,
                            execute,
                            call,
                            context,
                            result_id=result_id,
                            should_stop=is_over,
                        )
                    ] = place
                if not running:
                    return
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    yield running.pop(future), future.result()
        finally:
            dropped.set()
