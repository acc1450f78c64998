import threading
import time
from collections.abc import Iterator

import pytest

from mira_site.llm import interruption


class Numbers:
    """Counts until it is told to stop, silently after `loud` of them."""

    def __init__(self, loud: int, *, then: Exception | None = None, ends: bool = False) -> None:
        self.loud, self.then, self.ends = loud, then, ends
        self.was_aborted = threading.Event()

    def __iter__(self) -> Iterator[int]:
        yield from range(self.loud)
        if self.then is not None:
            raise self.then
        if not self.ends:
            self.was_aborted.wait(5)

    def abort(self) -> None:
        self.was_aborted.set()


def never() -> bool:
    return False


def test_everything_the_source_brings_comes_in_order():
    source = Numbers(500, ends=True)
    got = list(interruption.read(lambda: source, should_stop=never, poll_s=1))
    assert got == [None, *range(500)]
    assert not source.was_aborted.is_set()


def test_an_error_of_the_source_is_raised_where_it_is_read():
    source = Numbers(2, then=KeyError("index"))
    reading = interruption.read(lambda: source, should_stop=never, poll_s=1)
    assert [next(reading), next(reading), next(reading)] == [None, 0, 1]
    with pytest.raises(KeyError):
        next(reading)


def test_a_source_that_cannot_be_opened_is_an_error_too():
    def connect() -> Numbers:
        raise OSError

    with pytest.raises(OSError):
        list(interruption.read(connect, should_stop=never, poll_s=1))


def test_a_silent_source_is_left_when_it_should_stop():
    source = Numbers(1)
    until = time.monotonic() + 0.1
    got = list(
        interruption.read(lambda: source, should_stop=lambda: time.monotonic() > until, poll_s=0.02)
    )
    assert got == [None, 0]
    assert source.was_aborted.is_set()


def test_a_source_that_opens_too_late_is_aborted():
    source, opened = Numbers(0), threading.Event()

    def connect() -> Numbers:
        opened.wait(5)
        return source

    asked = iter([False, True])
    reading = interruption.read(connect, should_stop=lambda: next(asked), poll_s=0.01)
    assert list(reading) == [None]
    opened.set()
    assert source.was_aborted.wait(2)


def test_a_reader_that_leaves_aborts_the_source():
    source = Numbers(3)
    reading = interruption.read(lambda: source, should_stop=never, poll_s=1)
    next(reading)
    reading.close()
    assert source.was_aborted.is_set()
