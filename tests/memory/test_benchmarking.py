"""bench_recall measures what recall finds, and leaves nothing behind."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from memory import benchmarking
from memory.models import Memory
from mira_site.accounts.models import User
from mira_site.errors import BadRequest
from mira_site.isolation import all_users

SESSIONS = {
    "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [
        {"speaker": "Anna", "dia_id": "D1:1", "text": "Hey Ben! Anything new?"},
        {"speaker": "Ben", "dia_id": "D1:2", "text": "I adopted a tortoise called Tank."},
    ],
    "session_2_date_time": "12:05 am on 20 June, 2023",
    "session_2": [
        {
            "speaker": "Anna",
            "dia_id": "D2:1",
            "text": "Look at my new boat!",
            "blip_caption": "a photo of a red canoe",
        },
    ],
}
QUESTIONS = [
    {"question": "What is Ben's tortoise called?", "evidence": ["D1:2"], "category": 4},
    {"question": "What colour is Anna's canoe?", "evidence": ["D:2:01; D9:9"], "category": 1},
    {"question": "When did Ben buy a horse?", "evidence": ["D1:2"], "category": 5},
    {"question": "Who is Carla?", "evidence": ["D7:1"], "category": 3},
]


@pytest.fixture
def dialogue(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    path.write_text(json.dumps(SESSIONS | {"qa": QUESTIONS}))
    return path


def run(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("bench_recall", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_evidence_is_repaired_and_what_cannot_be_judged_is_left_out(dialogue):
    read = benchmarking.read(dialogue)
    assert [one.evidence for one in read.questions] == [("D1:2",), ("D2:1",)]
    assert (
        read.turns[2].text == "Anna: Look at my new boat! [shares a photo: a photo of a red canoe]"
    )
    assert read.turns[2].line.startswith("(12:05 am on 20 June, 2023) Anna: ")
    assert read.turns[2].said_at.isoformat() == "2023-06-20T00:05:00+00:00"


@pytest.mark.django_db(transaction=True)
def test_the_evidence_is_found_and_nothing_stays(dialogue, embedder):
    out, err = run("--data", str(dialogue), "--json")
    report = json.loads(out)
    assert report["all"]["questions"] == 2
    assert report["all"]["recall@5"] == report["all"]["all_within_1000"] == 1.0
    assert set(report["categories"]) == {"multi-hop", "single-hop"}
    assert "storing 3 turns" in err
    with all_users("test"):
        assert not Memory.objects.exists()
    assert not User.objects.filter(username__startswith="bench-").exists()


@pytest.mark.django_db(transaction=True)
def test_without_json_it_prints_a_table(dialogue, embedder):
    out, _ = run("--data", str(dialogue))
    assert "R@10" in out
    assert "a recall takes" in out


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "other.json"
    path.write_text('{"a": 1}')
    with pytest.raises(BadRequest, match=r"other\.json"):
        benchmarking.read(path)
    with pytest.raises(CommandError, match=r"no LoCoMo dialogue|no turns"):
        call_command("bench_recall", "--data", str(path))
