"""Reading a source that may be silent for long, and still noticing at once that it should stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar

PROMPT_ITEMS = 8  # handed over one by one: the frame of an answer and its first words

Item = TypeVar("Item")
ItemOut = TypeVar("ItemOut", covariant=True)


class Source(Protocol[ItemOut]):
    """An iterator over a connection; `abort` ends it from another thread."""

    def __iter__(self) -> Iterator[ItemOut]: ...

    def abort(self) -> None: ...


class _Reader(threading.Thread, Generic[Item]):
    """Opens and reads the source. The last thing it puts is None or the error that ended it."""

    def __init__(self, connect: Callable[[], Source[Item]]) -> None:
        super().__init__(name="model-stream", daemon=True)
        self.items: SimpleQueue[tuple[Item] | BaseException | None] = SimpleQueue()
        self._connect = connect
        self._source: Source[Item] | None = None
        self._is_abandoned = False
        self._lock = threading.Lock()

    def run(self) -> None:
        end: BaseException | None = None
        try:
            source = self._connect()
            with self._lock:
                self._source = source
                if self._is_abandoned:
                    source.abort()
            for number, item in enumerate(source):
                self.items.put((item,))
                if number < PROMPT_ITEMS:
                    # In a burst this thread would keep the interpreter for 5 ms, and the first
                    # word would wait for it.
                    time.sleep(0)
        except BaseException as error:  # noqa: BLE001 raised again in the thread that asked
            end = error
        self.items.put(end)

    def abandon(self) -> None:
        with self._lock:
            self._is_abandoned = True
            if self._source is not None:
                self._source.abort()


def read(
    connect: Callable[[], Source[Item]], *, should_stop: Callable[[], bool], poll_s: float
) -> Iterator[Item | None]:
    """None, while the source is being opened; then what it brings, until it ends or `should_stop`.

    Errors of the source come through. `should_stop` is asked in the caller's thread, where its
    database connection and its context are: after each item, and every `poll_s` while none comes.
    """
    reader = _Reader(connect)
    reader.start()
    has_ended = False
    try:
        yield None
        while not should_stop():
            try:
                got = reader.items.get(timeout=poll_s)
            except Empty:
                continue
            if isinstance(got, tuple):
                yield got[0]
                continue
            has_ended = True
            if got is not None:
                raise got
            return
    finally:
        if not has_ended:
            reader.abandon()
