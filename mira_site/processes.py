"""Child processes that do not outlive their parent."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

PR_SET_PDEATHSIG = 1  # linux/prctl.h
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A process to keep running in the foreground, and how to end it.

    `orphan_signal` is what the kernel sends it when its parent is gone (on Linux).
    """

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    uid: int | None = None
    gid: int | None = None
    cwd: Path | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    orphan_signal: signal.Signals = signal.SIGKILL


def spawn(command: Command, *, output: int | IO[Any] | None = None) -> subprocess.Popen[bytes]:
    """Start it in a session of its own, so that Ctrl-C in the terminal reaches the parent alone.

    The kernel sends the orphan signal when the *thread* that called this ends, so call it from a
    thread that lives as long as the parent.
    """
    parent = os.getpid()

    def tie_to_parent() -> None:
        # After the change of account, which would clear it.
        if _libc is not None:
            _libc.prctl(PR_SET_PDEATHSIG, int(command.orphan_signal), 0, 0, 0)
            if os.getppid() != parent:  # it died before the tie held
                os._exit(1)

    return subprocess.Popen(  # noqa: S603 (our own argument lists)
        command.argv,
        env=dict(command.environment),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output is not None else None,
        start_new_session=True,
        user=command.uid,
        group=command.gid,
        extra_groups=None if command.uid is None else [],
        cwd=command.cwd,
        preexec_fn=tie_to_parent,
    )


def signal_to(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)


def end(process: subprocess.Popen[bytes], command: Command, *, grace_s: float) -> None:
    """Ask it to stop, and kill it with its group if it does not within the grace."""
    signal_to(process, command.stop_signal)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=grace_s)
    kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of it and of what it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
