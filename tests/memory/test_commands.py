"""Commands of memory: what they say, what they change, and whose."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError

from conversations.models import Segment
from memory import scores
from memory.models import Memory
from mira_site import embeddings, isolation
from mira_site.accounts.models import UseDay, User
from mira_site.errors import EmbeddingsUnavailable
from tests.conversations import talking
from tests.factories import MemoryFactory

FLAT = [1.0] + [0.0] * 383


def command(name: str, *options: str) -> tuple[str, str]:
    """What it returned in the end, and its progress."""
    out, err = io.StringIO(), io.StringIO()
    call_command(name, *options, stdout=out, stderr=err)
    return out.getvalue().strip(), err.getvalue()


@pytest.fixture
def idle(alice: User, bob: User) -> dict[str, Memory]:
    """A memory of each that lay idle for fifty use-days."""
    made = {}
    for user in (alice, bob):
        with isolation.acting_as(user.pk):
            UseDay.objects.bulk_create(
                UseDay(
                    user=user,
                    day_on=date(2026, 1, 1) + timedelta(days=n),
                    first_message_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=n),
                )
                for n in range(51)
            )
            made[user.username] = MemoryFactory(user=user, embedding=FLAT)
    return made


def reasons(rows: dict[str, Memory]) -> dict[str, str]:
    with isolation.all_users("test"):
        for row in rows.values():
            row.refresh_from_db()
    return {name: row.archive_reason for name, row in rows.items()}


@pytest.mark.parametrize("name", ["score_memories", "extract_memories", "derive_memories"])
def test_each_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as ended:
        call_command(name, "--help")
    assert ended.value.code == 0
    assert "--user" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["score_memories", "extract_memories", "derive_memories"])
def test_an_unknown_person_is_an_error(name, db):
    with pytest.raises(CommandError, match="no account"):
        command(name, "--user", "nobody")


def test_what_is_missing_is_derived_once_for_each_or_for_one(idle):
    assert command("derive_memories", "--dry-run")[0].startswith("2 people: 2 fingerprints")
    summary, progress = command("derive_memories", "--user", "bob")
    assert summary.startswith("1 people: 1 fingerprints")
    assert "1/1" in progress
    assert command("derive_memories")[0].startswith("2 people: 1 fingerprints")
    assert command("derive_memories")[0].startswith("2 people: 0 fingerprints")


# --- score_memories --------------------------------------------------------------------------
def test_everybody_is_scored(idle):
    summary, progress = command("score_memories")
    assert summary == "2 people: 2 scores changed, 2 memories to the archive."
    assert "2/2" in progress
    assert reasons(idle) == {"alice": "faded", "bob": "faded"}


def test_only_the_named_person_is_scored(idle):
    assert command("score_memories", "--user", "bob")[0].startswith("1 people")
    assert reasons(idle) == {"alice": "", "bob": "faded"}


def test_a_dry_run_changes_nothing(idle):
    summary, _ = command("score_memories", "--dry-run")
    assert summary == "2 people: 2 scores would change, 2 memories to the archive."
    assert reasons(idle) == {"alice": "", "bob": ""}
    assert idle["alice"].importance == 0.5


def test_scoring_twice_changes_nothing_more(idle):
    command("score_memories")
    assert command("score_memories")[0].startswith("2 people: 0 scores changed, 0 memories")


def test_one_person_who_cannot_be_scored_stops_nobody(idle, alice, monkeypatch):
    real = scores.archive_faded

    def breaks(user, *, now):
        if user.pk == alice.pk:
            raise DatabaseError("gone")
        return real(user, now=now)

    monkeypatch.setattr(scores, "archive_faded", breaks)
    with pytest.raises(CommandError, match="1 of 2 people"):
        command("score_memories")
    assert reasons(idle) == {"alice": "", "bob": "faded"}
    assert idle["alice"].importance == 0.5


# --- extract_memories ------------------------------------------------------------------------
@pytest.fixture
def left(alice: User, bob: User, embedder: None, monkeypatch) -> dict[str, Segment]:
    """A segment of each whose collapse stopped before it was read: no text could be embedded."""
    segments = {}
    for user in (alice, bob):
        with isolation.acting_as(user.pk):
            segments[user.username] = talking.quiet(user, "My boat is called Merula.")
    with monkeypatch.context() as patched:
        away(patched)
        with pytest.raises(CommandError):
            command("collapse_segments")
    return segments


def away(monkeypatch) -> None:
    """From now on no text can be embedded."""

    def gone(folder: object) -> embeddings.Encoder:
        raise EmbeddingsUnavailable("The embedding model could not be loaded.")

    monkeypatch.setattr(embeddings, "_loaded", [])
    monkeypatch.setattr(embeddings, "_load", gone)


def read(segments: dict[str, Segment]) -> dict[str, bool]:
    with isolation.all_users("test"):
        for segment in segments.values():
            segment.refresh_from_db()
    return {name: segment.remembered_at is not None for name, segment in segments.items()}


def test_what_was_left_unread_is_read_without_waiting(left):
    assert read(left) == {"alice": False, "bob": False}
    assert command("extract_memories", "--dry-run")[0].startswith("2 segments would be read")
    assert read(left) == {"alice": False, "bob": False}
    assert command("extract_memories", "--user", "alice")[0] == "1 segments read for memories."
    assert read(left) == {"alice": True, "bob": False}
    with isolation.all_users("test"):
        assert set(Memory.objects.values_list("user__username", flat=True)) == {"alice"}
    assert command("extract_memories")[0] == "1 segments read for memories."
    assert command("extract_memories")[0] == "0 segments read for memories."
    assert read(left) == {"alice": True, "bob": True}


def test_what_still_cannot_be_read_stays_due_and_the_command_fails(left, monkeypatch):
    away(monkeypatch)
    with pytest.raises(CommandError, match="2 of 2 segments could not be read; they stay due"):
        command("extract_memories")
    assert read(left) == {"alice": False, "bob": False}
    with isolation.all_users("test"):
        assert {segment.status for segment in left.values()} == {"collapsing"}
        assert not Memory.objects.exists()


def test_a_quiet_conversation_is_left_to_its_collapse(alice, embedder):
    with isolation.acting_as(alice.pk):
        talking.quiet(alice, "My boat is called Merula.")
    assert command("extract_memories")[0] == "0 segments read for memories."
