"""The embedded services: whose role, which rights, what is left after a crash."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis
from django.db import connection

from mira_site import datadir, embedded, processes
from mira_site.errors import SettingError

ROOT = Path(__file__).parent.parent


@pytest.fixture
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("own") / "state"
    if os.geteuid() == 0:
        for parent in folder.parents:  # pytest makes them private; PostgreSQL's account must pass
            if parent.is_relative_to("/tmp/pytest-of-root"):
                parent.chmod(0o711)
    yield folder
    embedded.remove(folder)


@contextmanager
def running(*commands: processes.Command) -> Iterator[list[subprocess.Popen[bytes]]]:
    started = [processes.spawn(command, output=subprocess.DEVNULL) for command in commands]
    try:
        yield started
    finally:
        for command, process in zip(commands, started, strict=True):
            processes.end(process, command, grace_s=10)


def wait_for_postgres(data_dir: Path) -> psycopg.Connection:
    embedded.wait_until(lambda: embedded.postgres_is_up(data_dir), name="PostgreSQL", timeout_s=20)
    return psycopg.connect(embedded.urls(data_dir).database_url, autocommit=True)


def test_the_applications_role_is_no_superuser_and_bound_by_row_security(db):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole FROM pg_roles"
            " WHERE rolname = current_user"
        )
        assert cursor.fetchone() == ("mira", False, False, False)


def test_vectors_are_there_without_being_asked_for(db):
    with connection.cursor() as cursor:
        cursor.execute("SELECT '[3,4]'::vector <-> '[0,0]'::vector")
        assert cursor.fetchone() == (5.0,)


def test_postgres_listens_on_no_network(db):
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('listen_addresses')")
        assert cursor.fetchone() == ("",)


def test_a_killed_postgres_starts_again_on_what_was_committed(data_dir):
    embedded.prepare_postgres(data_dir)
    with running(embedded.postgres(data_dir)) as [server]:
        with wait_for_postgres(data_dir) as session:
            session.execute("CREATE TABLE kept AS SELECT 1 AS one")
        server.kill()
        server.wait()
    embedded.prepare_postgres(data_dir)
    with running(embedded.postgres(data_dir)), wait_for_postgres(data_dir) as session:
        assert session.execute("SELECT one FROM kept").fetchone() == (1,)


def test_a_pid_file_that_names_a_stranger_does_not_block_the_start(data_dir):
    embedded.prepare_postgres(data_dir)
    cluster = data_dir / "postgresql" / "data"
    (cluster / "postmaster.pid").write_text(f"{os.getpid()}\n{cluster}\n")
    embedded.prepare_postgres(data_dir)
    with running(embedded.postgres(data_dir)):
        wait_for_postgres(data_dir).close()


def test_preparing_again_ends_a_server_that_lost_its_supervisor(data_dir):
    embedded.prepare_postgres(data_dir)
    with running(embedded.postgres(data_dir)) as [server]:
        wait_for_postgres(data_dir).close()
        embedded.prepare_postgres(data_dir)
        assert server.wait(timeout=5) == 0


def test_a_cluster_left_half_made_is_made_anew(data_dir):
    half = data_dir / "postgresql" / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    embedded.prepare_postgres(data_dir)
    assert not half.exists()
    with running(embedded.postgres(data_dir)), wait_for_postgres(data_dir) as session:
        assert session.execute("SELECT current_user, current_database()").fetchone() == (
            "mira",
            "mira",
        )


def test_outside_the_tests_the_role_may_not_make_databases(data_dir):
    embedded.prepare_postgres(data_dir)
    refused = pytest.raises(psycopg.errors.InsufficientPrivilege)
    with running(embedded.postgres(data_dir)), wait_for_postgres(data_dir) as session, refused:
        session.execute("CREATE DATABASE another")


def test_the_log_of_postgres_holds_no_statement_and_no_value(data_dir, tmp_path):
    embedded.prepare_postgres(data_dir)
    log = tmp_path / "log"
    command = embedded.postgres(data_dir)
    with log.open("wb") as file:
        server = processes.spawn(command, output=file)
        with wait_for_postgres(data_dir) as session:
            session.execute("CREATE TABLE diary (line text UNIQUE)")
            session.execute("INSERT INTO diary VALUES ('dear-diary')")
            with pytest.raises(psycopg.errors.UniqueViolation):
                session.execute("INSERT INTO diary VALUES ('dear-diary')")
        processes.end(server, command, grace_s=10)
    assert "duplicate key" in log.read_text()
    assert "dear-diary" not in log.read_text()


def test_a_killed_redis_has_lost_nothing_it_acknowledged(data_dir):
    embedded.prepare_redis(data_dir)
    address = embedded.urls(data_dir).redis_url
    with running(embedded.redis_server(data_dir)) as [server]:
        embedded.wait_until(lambda: embedded.redis_answers(address), name="Redis", timeout_s=20)
        with redis.Redis.from_url(address) as client:
            for number in range(1000):
                client.rpush("queue", number)
        server.send_signal(signal.SIGKILL)
        server.wait()
    with running(embedded.redis_server(data_dir)):
        embedded.wait_until(lambda: embedded.redis_answers(address), name="Redis", timeout_s=20)
        with redis.Redis.from_url(address) as client:
            assert client.llen("queue") == 1000


def test_a_path_too_long_for_a_socket_still_works(data_dir):
    deep = data_dir / ("d" * 100)
    embedded.prepare_redis(deep)
    address = embedded.urls(deep).redis_url
    with running(embedded.redis_server(deep)):
        embedded.wait_until(lambda: embedded.redis_answers(address), name="Redis", timeout_s=20)
    embedded.remove(deep)


def test_a_secret_is_made_once_and_only_its_owner_reads_it(tmp_path):
    first = datadir.secret(tmp_path, "key")
    assert len(first) >= 40
    assert datadir.secret(tmp_path, "key") == first
    assert datadir.secret(tmp_path, "other") != first
    assert stat.S_IMODE((tmp_path / "secrets" / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "secrets").stat().st_mode) == 0o700


def test_processes_that_make_a_secret_at_once_agree(tmp_path):
    script = (
        "import sys; from pathlib import Path; from mira_site import datadir;"
        "print(datadir.secret(Path(sys.argv[1]), 'key'))"
    )
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE
        )
        for _ in range(4)
    ]
    assert len({maker.communicate()[0] for maker in makers}) == 1


def test_a_data_directory_in_use_is_refused_with_its_holder(tmp_path):
    refused = pytest.raises(SettingError, match=f"process {os.getpid()}")
    with datadir.sole_use(tmp_path), refused, datadir.sole_use(tmp_path):
        pass
    with datadir.sole_use(tmp_path):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL under another account")
def test_root_in_a_folder_others_cannot_enter_keeps_the_cluster_elsewhere(tmp_path):
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o700)
    data_dir = shut / "state"
    embedded.prepare_postgres(data_dir)
    assert (data_dir / "postgresql").readlink().is_relative_to("/var/lib/mira")
    with running(embedded.postgres(data_dir)):
        wait_for_postgres(data_dir).close()
    elsewhere = (data_dir / "postgresql").resolve()
    embedded.remove(data_dir)
    assert not elsewhere.exists()
    assert stat.S_IMODE(shut.stat().st_mode) == 0o700


def test_only_a_data_directory_is_ever_removed(tmp_path, monkeypatch):
    (tmp_path / "manage.py").touch()
    (tmp_path / "kept").touch()
    monkeypatch.chdir(tmp_path)
    for mistaken in (Path(), tmp_path):
        with pytest.raises(ValueError):
            embedded.remove(mistaken)
    assert (tmp_path / "kept").exists()
