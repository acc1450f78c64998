"""A reader in a process of its own, so that a bad file costs a process and not the server.

The parent gives the file on standard input and gets one line of JSON and then the bytes that are
kept instead. The child has no environment, a limit on time and memory, and may write no file.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Literal

import structlog

from conversations.reading.constants import CPU_S, MEMORY_BYTES, READERS_MAX, WAIT_S, WALL_S
from conversations.reading.types import Reading, Unreadable
from mira_site.errors import LimitReached

log = structlog.get_logger(__name__)

Reader = Literal["images", "pdfs", "documents", "sheets"]
ROOT = Path(__file__).resolve().parent.parent.parent
GAVE_UP = "It takes too long or too much memory to look into. It may be damaged."
BROKEN = "It cannot be read. It may be damaged, or not be what its name says."


_places = threading.BoundedSemaphore(READERS_MAX)


def read(reader: Reader, content: bytes) -> Reading:
    """What the reader says of the file. Raises Unreadable; LimitReached while too many read."""
    if not _places.acquire(timeout=WAIT_S):
        raise LimitReached("Many files are being looked into right now. Try again in a moment.")
    try:
        return _read(reader, content)
    finally:
        _places.release()


def _read(reader: Reader, content: bytes) -> Reading:
    try:
        done = subprocess.run(  # noqa: S603 (our own module, no shell, nothing of the file in it)
            [sys.executable, "-m", f"conversations.reading.{reader}"],
            input=content,
            capture_output=True,
            timeout=WALL_S,
            cwd=ROOT,
            env={},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        log.warning("file.reader_gave_up", reader=reader, reason="time")
        raise Unreadable(GAVE_UP) from error
    if done.returncode != 0:
        log.warning("file.reader_gave_up", reader=reader, returncode=done.returncode)
        raise Unreadable(GAVE_UP if done.returncode < 0 else BROKEN)
    head, _, kept = done.stdout.partition(b"\n")
    fields = json.loads(head)
    if "unreadable" in fields:
        raise Unreadable(fields["unreadable"])
    return replace(Reading(**fields), content=kept or None)


def serve(look: Callable[[bytes], Reading]) -> None:
    """The child's side: read one file and answer."""
    _confine()
    try:
        found = look(sys.stdin.buffer.read())
    except Unreadable as error:
        _answer({"unreadable": str(error)})
        return
    fields = asdict(replace(found, content=None))
    _answer(fields, found.content or b"")


def _confine() -> None:
    limits = {
        resource.RLIMIT_CPU: CPU_S,
        resource.RLIMIT_AS: MEMORY_BYTES,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    for name, limit in limits.items():
        with suppress(ValueError, OSError):  # macOS knows not all of them
            resource.setrlimit(name, (limit, limit))


def _answer(fields: dict[str, object], content: bytes = b"") -> None:
    sys.stdout.buffer.write(json.dumps(fields).encode("ascii") + b"\n" + content)
