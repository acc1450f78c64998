"""Probes, details and metrics: what they tell, and to whom."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
import time_machine
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from conversations.models import Segment, Thread, Turn
from mira_site import health, heartbeat, metrics
from mira_site.celery import app
from mira_site.isolation import acting_as


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    """What one test looked up is not told in the next."""
    health._kept.clear()


NOWHERE = "unix:///nonexistent/redis.sock?db=0"


def test_live_answers_whatever_host_is_asked_for(client: Client):
    answer = client.get("/health/live", headers={"host": "10.0.0.7:8000"})
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_ready_when_database_migrations_and_redis_are_there(client: Client, db):
    assert client.get("/health/ready").json() == {"status": "ok"}


def test_not_ready_without_redis_and_says_so(client: Client, db, settings: Settings):
    settings.REDIS_URL = NOWHERE
    answer = client.get("/health/ready")
    assert answer.status_code == 503
    assert answer.json() == {"status": "unavailable", "missing": ["redis"]}


def test_not_ready_while_a_migration_is_missing(client: Client, db, monkeypatch):
    monkeypatch.setattr(health, "_migrated", [])
    MigrationRecorder.Migration.objects.filter(app="conversations").delete()
    assert client.get("/health/ready").json()["missing"] == ["migrations"]


@pytest.mark.parametrize("path", ["/health/", "/metrics"])
def test_details_and_metrics_do_not_exist_for_others(client: Client, alice, path):
    assert client.get(path).status_code == 404
    client.force_login(alice)
    assert client.get(path).status_code == 404
    assert client.get(path, headers={"authorization": "Bearer "}).status_code == 404


@pytest.mark.parametrize("path", ["/health/", "/metrics"])
def test_details_and_metrics_open_with_the_token(client: Client, db, settings: Settings, path):
    settings.METRICS_TOKEN = "a-token"
    wrong, right = ({"authorization": f"Bearer {token}"} for token in ("other", "a-token"))
    assert client.get(path, headers=wrong).status_code == 404
    assert client.get(path, headers=right).status_code == 200


def test_staff_see_versions_and_queues(client: Client, staff):
    client.force_login(staff)
    told = client.get("/health/").json()
    assert told["missing"] == []
    assert told["versions"]["postgres"].startswith("18")
    assert set(told["queues"]) == {"turns", "background"}
    assert told["model"] == "offline"


def test_details_still_answer_without_redis(client: Client, staff, settings: Settings):
    client.force_login(staff)
    settings.REDIS_URL = NOWHERE
    answer = client.get("/health/")
    assert answer.status_code == 503
    assert answer.json()["missing"] == ["redis"]


def test_metrics_count_the_rows_of_everybody(client: Client, alice, staff):
    now = timezone.now()
    with acting_as(alice.pk):
        thread = Thread.objects.create(user=alice)
        segment = Segment.objects.create(
            user=alice,
            thread=thread,
            opened_at=now - timedelta(hours=3),
            last_message_at=now - timedelta(hours=2),
        )
        Turn.objects.create(
            user=alice,
            thread=thread,
            segment=segment,
            client_id=uuid.uuid4(),
            status=Turn.Status.FAILED,
            queued_at=now,
        )
    client.force_login(staff)
    told = client.get("/metrics").content.decode()
    assert 'mira_turns{status="failed"} 1.0' in told
    assert "mira_segments_due 1.0" in told
    assert 'mira_queue_length{queue="turns"} 0.0' in told
    assert "alice" not in told


def test_details_name_every_part_and_how_it_does(client: Client, staff):
    for queue in heartbeat.QUEUES:
        heartbeat.leave_sign(queue)
    client.force_login(staff)
    told = client.get("/health/").json()
    assert told["status"] == "ok"
    assert {part: check["status"] for part, check in told["checks"].items()} == {
        "database": "pass",
        "migrations": "pass",
        "redis": "pass",
        "vector_store": "pass",
        "embedder": "pass",
        "worker_turns": "pass",
        "worker_background": "pass",
    }
    assert told["workers"] == {"turns": 0, "background": 0}
    assert told["webhooks"] == {"pending": 0, "due": 0, "dead": 0, "breakers_open": 0}
    assert told["due_work"]["collapse"] == 0


def test_a_worker_without_signs_of_life_degrades_but_stops_nothing(client: Client, staff):
    heartbeat.leave_sign("turns")
    client.force_login(staff)
    answer = client.get("/health/")
    assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
    assert answer.json()["checks"]["worker_background"]["status"] == "warn"
    assert client.get("/health/ready").status_code == 200


def test_a_sign_of_life_grows_old(client: Client, staff):
    with time_machine.travel(timezone.now() - timedelta(minutes=2), tick=False):
        heartbeat.leave_sign("turns")
    assert heartbeat.ages()["turns"] == pytest.approx(120, abs=5)
    client.force_login(staff)
    assert client.get("/health/").json()["checks"]["worker_turns"]["status"] == "warn"


def test_details_are_looked_up_once_in_five_seconds(
    client: Client, staff, django_assert_max_num_queries
):
    client.force_login(staff)
    first = client.get("/health/").json()
    with django_assert_max_num_queries(2):  # who asks
        assert client.get("/health/").json() == first
    health._kept[:] = [(health._kept[0][0] - 6, first)]
    assert client.get("/health/").json()["timestamp"] != first["timestamp"]


def test_the_schedule_leaves_a_sign_in_every_queue():
    entries = [one for one in app.conf.beat_schedule.values() if "heartbeat" in one["task"]]
    assert {one["options"]["queue"] for one in entries} == set(heartbeat.QUEUES)


def test_metrics_tell_of_webhooks_memories_and_what_was_recorded(client: Client, staff):
    client.force_login(staff)
    told = client.get("/metrics").content.decode()
    for name in (
        "mira_webhook_deliveries",
        "mira_memory_count",
        "mira_vector_count",
        "mira_heartbeat_age_seconds",
        "mira_store_total",
        "mira_recall_duration_seconds_bucket",
    ):
        assert name in told


def test_how_things_stand_is_told_once_where_processes_share_their_counts(
    client: Client, staff, monkeypatch, tmp_path
):
    monkeypatch.setenv(metrics.MULTIPROC_DIR, str(tmp_path))
    client.force_login(staff)
    told = client.get("/metrics").content.decode().splitlines()
    assert len([line for line in told if line.startswith("mira_users")]) == 1
    assert list(tmp_path.iterdir()) == []
