"""Everything MIRA needs on one machine, under one supervisor: what `manage.py serve` runs."""

from __future__ import annotations

import hashlib
import http.client
import os
import socket
import sys
from contextlib import closing, suppress
from pathlib import Path

from django.conf import settings

from mira_site import datadir, embedded, metrics
from mira_site.errors import DependencyError, SettingError
from mira_site.processes import Command
from mira_site.supervisor import StopRequested, Supervisor

# The order of the end: nobody new comes in, then work is finished, then its servers go.
WEB, WORKERS, REDIS, POSTGRES = range(4)
READY_WITHIN_S = 60.0
RECOVERY_WITHIN_S = 600.0  # PostgreSQL after a crash, Redis with a long append-only file
PREPARED_WITHIN_S = 3600.0  # a migration of a big database takes its time
SETUP_LINK = "setup-link"  # in the data directory; prepare writes it while there is no account
LATER_S = 4.0
PROBE_TIMEOUT_S = 2.0
TURNS_AT_ONCE = 8  # a turn mostly waits for the model
BACKGROUND_AT_ONCE = 2


def serve() -> None:
    """Run until a signal asks to stop.

    The apps are not loaded in this process: it stays small, and its children load them meanwhile.
    Raises SettingError if it cannot start as set, DependencyError if a part does not come up.
    """
    with datadir.sole_use(settings.MIRA_DATA_DIR):
        _require_free_port(settings.HOST, settings.PORT)
        _start_counting_anew()
        with Supervisor() as supervisor, suppress(StopRequested):
            _start_services(supervisor)
            _start_web(supervisor)
            supervisor.say(f"MIRA is ready at {_address()}")
            setup_link = settings.MIRA_DATA_DIR / SETUP_LINK
            if setup_link.exists():
                path = setup_link.read_text(encoding="utf-8")
                supervisor.say(f"Create the first account, once, at {_address()}{path}")
            turns, background = _workers()
            supervisor.start(turns, stage=WORKERS)
            # Loading all of it at once would only make the first answer wait longer.
            for command in (background, _beat()):
                supervisor.start(command, stage=WORKERS, after_s=LATER_S)
            supervisor.run()


def database_is_away() -> bool:
    """Whether the database is MIRA's own and does not run."""
    return settings.EMBEDS_POSTGRES and not embedded.postgres_is_up(settings.MIRA_DATA_DIR)


def _start_counting_anew() -> None:
    """Metrics begin at zero with the server, not with what processes long gone have left."""
    folder = _metrics_folder()
    folder.mkdir(mode=0o700, exist_ok=True)
    for path in folder.glob("*.db"):
        path.unlink()


def _metrics_folder() -> Path:
    return Path(settings.MIRA_DATA_DIR) / "metrics"


def _start_services(supervisor: Supervisor) -> None:
    data_dir = settings.MIRA_DATA_DIR
    if settings.EMBEDS_POSTGRES:
        embedded.prepare_postgres(data_dir)
        supervisor.start(embedded.postgres(data_dir), stage=POSTGRES)
    if settings.EMBEDS_REDIS:
        embedded.prepare_redis(data_dir)
        supervisor.start(embedded.redis_server(data_dir), stage=REDIS)
    if settings.EMBEDS_POSTGRES:
        supervisor.wait_for(
            lambda: embedded.postgres_is_up(data_dir),
            name="PostgreSQL",
            timeout_s=RECOVERY_WITHIN_S,
        )
    supervisor.wait_for(
        lambda: embedded.redis_answers(settings.REDIS_URL),
        name="Redis",
        timeout_s=RECOVERY_WITHIN_S,
    )


def _start_web(supervisor: Supervisor) -> None:
    """Prepare and start the web server: at the same time if no file of the pages has changed."""
    stamp, sources = settings.MIRA_DATA_DIR / "static-sources", _static_sources()
    is_stale = not stamp.exists() or stamp.read_text(encoding="ascii") != sources
    preparing = supervisor.start(_prepare(collect_static=is_stale), stage=WORKERS, is_once=True)
    if not is_stale:
        supervisor.start(_web(), stage=WEB)
    supervisor.wait_for(
        lambda: preparing.exit_code is not None, name="prepare", timeout_s=PREPARED_WITHIN_S
    )
    if preparing.exit_code != 0:
        raise DependencyError("MIRA could not be prepared. The lines above say why.")
    if is_stale:
        stamp.write_text(sources, encoding="ascii")
        supervisor.start(_web(), stage=WEB)
    supervisor.wait_for(_is_ready, name="The web server", timeout_s=READY_WITHIN_S)


def _static_sources() -> str:
    """A digest that changes with the name, size or time of a static file, and with a new release.

    The files of packages change with requirements.txt.
    """
    digest = hashlib.sha256()
    folder = settings.BASE_DIR / "static"
    for path in (settings.BASE_DIR / "requirements.txt", *sorted(folder.rglob("*"))):
        found = path.stat()
        digest.update(f"{path} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _prepare(*, collect_static: bool) -> Command:
    options = ("--static",) if collect_static else ()
    return _python("prepare", "manage", "prepare", *options)


def _web() -> Command:
    options = {
        "--host": settings.HOST,
        "--port": str(settings.PORT),
        "--ws": "websockets-sansio",
        "--lifespan": "off",
        "--log-level": "warning",
        # An open chat page holds its socket for hours; it reconnects by itself.
        "--timeout-graceful-shutdown": "3",
    }
    flags = ("--no-proxy-headers", "--no-access-log", "--no-server-header")
    pairs = (part for pair in options.items() for part in pair)
    return _python("web", "uvicorn", "mira_site.asgi:application", *pairs, *flags)


def _workers() -> tuple[Command, ...]:
    """Turns have a worker of their own, so that no background job stands in front of one."""
    return tuple(
        _python(
            queue,
            # Quiet: its banner of a hundred lines would push the set-up link off the screen.
            *("celery", "-A", "mira_site.celery", "--quiet"),
            *("worker", "-Q", queue, "-n", f"{queue}@%h"),
            *("--pool", "threads", "--concurrency", str(at_once), "--loglevel", "INFO"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        )
        for queue, at_once in (("turns", TURNS_AT_ONCE), ("background", BACKGROUND_AT_ONCE))
    )


def _beat() -> Command:
    schedule = settings.MIRA_DATA_DIR / "beat-schedule"
    return _python(
        "beat",
        *("celery", "-A", "mira_site.celery", "--quiet", "beat", "--schedule", str(schedule)),
        *("--pidfile", "", "--loglevel", "INFO"),
    )


def _python(name: str, module: str, *arguments: str) -> Command:
    return Command(
        name=name,
        argv=(sys.executable, "-m", module, *arguments),
        environment={
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            metrics.MULTIPROC_DIR: str(_metrics_folder()),
        },
        cwd=settings.BASE_DIR,
    )


def _is_ready() -> bool:
    host = "127.0.0.1" if settings.HOST in {"0.0.0.0", "::"} else settings.HOST  # noqa: S104
    with closing(http.client.HTTPConnection(host, settings.PORT, timeout=PROBE_TIMEOUT_S)) as line:
        try:
            line.request("GET", "/health/ready")
            return line.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False


def _address() -> str:
    if settings.PUBLIC_URL:
        return str(settings.PUBLIC_URL).rstrip("/")
    host = f"[{settings.HOST}]" if ":" in settings.HOST else settings.HOST
    return f"http://{host}:{settings.PORT}"


def _require_free_port(host: str, port: int) -> None:
    """Raises SettingError if uvicorn could not listen there."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except OSError as error:
        raise SettingError(
            f"Cannot listen on {host}, port {port} ({error.strerror}). Stop what uses it, or set "
            "HOST and PORT."
        ) from error
