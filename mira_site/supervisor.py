"""Keeps a handful of processes running: restarts, prefixed logs, an orderly end.

One thread and one loop. Signals and dead children wake the loop through a pipe; nothing happens in
a signal handler itself.
"""

from __future__ import annotations

import io
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType, TracebackType
from typing import TextIO

from mira_site import processes
from mira_site.errors import DependencyError
from mira_site.processes import Command

RESTART_FIRST_S = 1.0
RESTART_LONGEST_S = 10.0
HEALTHY_AFTER_S = 60.0  # a child that lived this long starts again with the shortest delay
STOP_GRACE_S = 10.0  # for each stage of the end
TICK_S = 0.1
LINE_MAX = 64 * 1024  # bytes of a line kept while its end is awaited
COLOURS = (36, 33, 35, 32, 34, 31)
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(Exception):
    """A signal asked the supervisor to end before it was up."""


@dataclass(slots=True)
class Child:
    """`exit_code` stays None while it runs, and for good with one that is started again."""

    command: Command
    stage: int
    colour: int
    is_once: bool = False
    exit_code: int | None = None
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    restart_at: float | None = None
    delay_s: float = RESTART_FIRST_S
    unfinished: bytes = field(default=b"")


class Supervisor:
    """Use as a context manager: on the way out every child is ended, lowest stage first."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._is_coloured = self._out.isatty()
        self._children: list[Child] = []
        self._selector = selectors.DefaultSelector()
        self._stop_requests = 0
        self._is_ending = False

    def __enter__(self) -> Supervisor:
        self._wake_r, self._wake_w = os.pipe()
        for end in (self._wake_r, self._wake_w):
            os.set_blocking(end, False)
        self._selector.register(self._wake_r, selectors.EVENT_READ, None)
        signal.set_wakeup_fd(self._wake_w, warn_on_full_buffer=False)
        for number in STOP_SIGNALS:
            signal.signal(number, self._note_stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # wakes the loop, no more
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end_all()
        signal.set_wakeup_fd(-1)
        self._selector.close()
        os.close(self._wake_r)
        os.close(self._wake_w)

    def start(
        self, command: Command, *, stage: int, is_once: bool = False, after_s: float = 0
    ) -> Child:
        """Run it from now on, again whenever it ends unless it is meant to run once.

        At the end the stages are stopped one after another, 0 first.
        """
        colour = COLOURS[len(self._children) % len(COLOURS)]
        child = Child(command, stage, colour, is_once)
        child.restart_at = time.monotonic() + after_s
        self._children.append(child)
        self._look_after(child)
        return child

    def wait_for(self, answers: Callable[[], bool], *, name: str, timeout_s: float) -> None:
        """Look after the children until `answers()` is true.

        Raises DependencyError when the time is up, StopRequested on a signal to stop.
        """
        deadline = time.monotonic() + timeout_s
        while not answers():
            if self._stop_requests:
                raise StopRequested
            if time.monotonic() > deadline:
                raise DependencyError(
                    f"{name} was not ready within {timeout_s:.0f} seconds. Its last lines say why."
                )
            self._turn(TICK_S / 2)

    def run(self) -> None:
        """Look after the children until a signal asks to stop."""
        while not self._stop_requests:
            self._turn(TICK_S)

    def say(self, text: str) -> None:
        self._print("mira", 1, text)

    # --- the loop ----------------------------------------------------------------------------
    def _turn(self, timeout_s: float) -> None:
        for key, _ in self._selector.select(timeout_s):
            if key.data is None:
                os.read(self._wake_r, 4096)
            else:
                self._read(key.data)
        for child in self._children:
            self._look_after(child)

    def _look_after(self, child: Child) -> None:
        now = time.monotonic()
        if child.process is not None and child.process.poll() is not None:
            self._bury(child)
            if self._is_ending or child.is_once:
                return
            if now - child.started_at >= HEALTHY_AFTER_S:
                child.delay_s = RESTART_FIRST_S
            child.restart_at = now + child.delay_s
            self.say(f"{child.command.name} starts again in {child.delay_s:.0f} s.")
            child.delay_s = min(child.delay_s * 2, RESTART_LONGEST_S)
        elif child.restart_at is not None and now >= child.restart_at and not self._is_ending:
            child.restart_at = None
            self._spawn(child)

    def _spawn(self, child: Child) -> None:
        child.process = processes.spawn(child.command, output=subprocess.PIPE)
        child.started_at = time.monotonic()
        assert child.process.stdout is not None  # noqa: S101 (asked for a pipe in the line above)
        os.set_blocking(child.process.stdout.fileno(), False)
        self._selector.register(child.process.stdout, selectors.EVENT_READ, child)

    def _bury(self, child: Child) -> None:
        """Say how it ended, and take its last words and whatever it left in its group."""
        process = child.process
        if process is None:
            return
        processes.kill_group(process)
        self._read(child)
        if process.stdout is not None and not process.stdout.closed:
            self._selector.unregister(process.stdout)
            process.stdout.close()
        if child.unfinished:
            self._print(child.command.name, child.colour, _as_text(child.unfinished))
            child.unfinished = b""
        child.process = None
        if child.is_once:
            child.exit_code = process.returncode
        if not self._is_ending and not (child.is_once and process.returncode == 0):
            self.say(f"{child.command.name} {_how_it_ended(process.returncode)}.")

    def _read(self, child: Child) -> None:
        process = child.process
        if process is None or process.stdout is None or process.stdout.closed:
            return
        try:
            read = os.read(process.stdout.fileno(), LINE_MAX)
        except BlockingIOError:
            return
        if not read:  # it closed its output, and is about to end
            self._selector.unregister(process.stdout)
            process.stdout.close()
            return
        *lines, child.unfinished = (child.unfinished + read).split(b"\n")
        if len(child.unfinished) > LINE_MAX:
            lines, child.unfinished = [*lines, child.unfinished], b""
        for line in lines:
            self._print(child.command.name, child.colour, _as_text(line))

    def _print(self, name: str, colour: int, text: str) -> None:
        prefix = f"{name:<10} |"
        if self._is_coloured:
            prefix = f"\x1b[{colour}m{prefix}\x1b[0m"
        try:
            self._out.write(f"{prefix} {text}\n")
            self._out.flush()
        except OSError:  # nobody reads any more: the terminal is gone
            self._out = io.StringIO()
            self._stop_requests += 1

    # --- the end -----------------------------------------------------------------------------
    def _note_stop(self, number: int, frame: FrameType | None) -> None:
        self._stop_requests += 1

    def _end_all(self) -> None:
        self._is_ending = True
        if any(child.process for child in self._children):
            self.say("Stopping. Press Ctrl-C again to stop at once.")
        for stage in sorted({child.stage for child in self._children}):
            self._end_stage([child for child in self._children if child.stage == stage])
        self.say("Stopped.")

    def _end_stage(self, children: Sequence[Child]) -> None:
        for child in children:
            if child.process is not None:
                processes.signal_to(child.process, child.command.stop_signal)
        patience = self._stop_requests
        deadline = time.monotonic() + STOP_GRACE_S
        while any(child.process for child in children):
            if time.monotonic() > deadline or self._stop_requests > patience:
                for child in children:
                    if child.process is not None:
                        self.say(f"{child.command.name} did not stop in time and is killed.")
                        processes.kill_group(child.process)
            self._turn(TICK_S / 2)


def _as_text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


def _how_it_ended(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
