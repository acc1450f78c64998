"""What is recorded, by whom, and that it is all told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mira_site import metrics
from mira_site.errors import EmbeddingsUnavailable

ROOT = Path(__file__).parent.parent
RECORDS = """
from mira_site import metrics
with metrics.stage("embed"):
    pass
metrics.stored(2)
metrics.webhook_attempted("delivered")
"""
TELLS = """
from prometheus_client import generate_latest
from mira_site import metrics
print(generate_latest(metrics.registry()).decode())
"""


def value(name: str, **labels: str) -> float:
    return metrics.REGISTRY.get_sample_value(name, labels) or 0.0


def test_an_operation_is_counted_and_timed():
    before = value("mira_search_total"), value("mira_search_duration_seconds_count")
    with metrics.operation("search"):
        pass
    after = value("mira_search_total"), value("mira_search_duration_seconds_count")
    assert after == (before[0] + 1, before[1] + 1)


def test_an_operation_that_fails_is_an_error_by_its_code():
    name, labels = "mira_errors_total", {"operation": "embed", "code": "embeddings_unavailable"}
    before = value(name, **labels), value("mira_embed_total")
    with pytest.raises(EmbeddingsUnavailable), metrics.operation("embed"):
        raise EmbeddingsUnavailable("away")
    assert (value(name, **labels), value("mira_embed_total")) == (before[0] + 1, before[1])


def test_a_stage_is_timed_even_if_it_fails():
    before = value("mira_recall_stage_seconds_count", stage="rank")
    with pytest.raises(RuntimeError), metrics.stage("rank"):
        raise RuntimeError
    assert value("mira_recall_stage_seconds_count", stage="rank") == before + 1


def test_the_shape_of_a_recall_is_recorded():
    before = value("mira_recall_selected_total", mode="verbatim")
    metrics.recalled(
        candidates=40,
        selected={"verbatim": 3, "header": 1},
        tokens=180,
        budget_tokens=2000,
        quality=0.97,
    )
    assert value("mira_recall_selected_total", mode="verbatim") == before + 3
    assert value("mira_recall_allocation_quality_count") >= 1


def test_every_process_adds_to_what_any_of_them_tells(tmp_path):
    environment = {**os.environ, metrics.MULTIPROC_DIR: str(tmp_path)}

    def run(script: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip

    for _ in range(3):
        run(RECORDS)
    told = run(TELLS)
    assert "mira_store_total 6.0" in told
    assert 'mira_recall_stage_seconds_count{stage="embed"} 3.0' in told
    assert 'mira_webhook_attempts_total{outcome="delivered"} 3.0' in told


def test_no_label_can_name_a_person():
    labels = {
        label
        for family in metrics.REGISTRY.collect()
        for sample in family.samples
        for label in sample.labels
    }
    assert labels <= {"le", "stage", "mode", "operation", "code", "outcome", "part"}
