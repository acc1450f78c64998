"""The data directory: secrets, the lock of its one server, and folders only their owner enters."""

from __future__ import annotations

import fcntl
import hashlib
import os
import pwd
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mira_site.errors import SettingError

SOCKET_PATH_MAX = 103  # bytes without the final NUL; macOS allows 104 with it, Linux 108
# Where parts go that root cannot keep in the data directory; see embedded.py.
ROOTS_STATE = Path("/var/lib/mira")


def secret(data_dir: Path, name: str, make: Callable[[], str] = secrets.token_urlsafe) -> str:
    """The secret kept under this name, made on first use, in a file only its owner reads.

    Two processes that make it at the same moment get the same one.
    """
    folder = data_dir / "secrets"
    path = folder / name
    if not path.exists():
        make_data_dir(data_dir)
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=folder)  # mode 0600
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(make())
            file.flush()
            os.fsync(descriptor)
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            Path(draft).unlink()
    return path.read_text(encoding="utf-8")


@contextmanager
def sole_use(data_dir: Path) -> Iterator[None]:
    """Hold the data directory against a second server. Raises SettingError if one holds it."""
    make_data_dir(data_dir)
    with (data_dir / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise SettingError(
                f"MIRA already runs on {data_dir} (process {holder}). Stop it first, or set "
                "MIRA_DATA_DIR to another folder."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def socket_dir(home: Path, socket_name: str) -> Path:
    """`home`, or a short folder under /tmp where the path is too long for a Unix socket."""
    home = home.resolve()
    if len(os.fsencode(home / socket_name)) <= SOCKET_PATH_MAX:
        return home
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    return Path("/tmp") / f"mira-{digest}"  # noqa: S108 (made private, and its owner checked)


def make_data_dir(data_dir: Path) -> None:
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = stat.S_IMODE(data_dir.stat().st_mode)
    if os.geteuid() == 0 and not mode & stat.S_IXOTH:
        data_dir.chmod(mode | stat.S_IXOTH)  # PostgreSQL's account passes through to its own folder


def make_private_dir(folder: Path, owner: pwd.struct_passwd) -> None:
    """A folder only `owner` enters. Raises SettingError if it is there and somebody else's."""
    try:
        folder.mkdir(mode=0o700, parents=True)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    except FileExistsError:
        pass
    if os.geteuid() == 0 and folder.is_relative_to(ROOTS_STATE):
        ROOTS_STATE.chmod(0o755)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {owner.pw_uid, os.geteuid()}:
        raise SettingError(
            f"{folder} belongs to somebody else. Set MIRA_DATA_DIR to another folder."
        )
    os.chown(folder, owner.pw_uid, owner.pw_gid)
    folder.chmod(0o700)


def others_may_enter(path: Path) -> bool:
    """Whether an account without rights of its own reaches `path`; missing parts do not count."""
    path = path.resolve()
    existing = [part for part in (path, *path.parents) if part.exists()]
    return all(part.stat().st_mode & stat.S_IXOTH for part in existing)
