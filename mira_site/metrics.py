"""What happened, counted and timed, for Prometheus. No label names a person or holds a text.

Every process records for itself. Where PROMETHEUS_MULTIPROC_DIR names a directory (`serve` sees to
it), all of them write there and any web process tells the sums; without it a process tells its own.
An observation takes 1 to 5 µs and never fails what it measures.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.multiprocess import MultiProcessCollector

from mira_site.errors import MiraError

Stage = Literal["prepare", "embed", "candidates", "rank", "allocate", "render"]
Operation = Literal["store", "recall", "search", "embed"]

MULTIPROC_DIR = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client when it is imported
# Seconds. The library's own begin at 5 ms, where most stages have ended.
FAST: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
COUNTS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
TOKENS: Final = (50, 100, 250, 500, 1000, 2000, 4000, 8000, 16000, 32000)
SHARES: Final = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0)

REGISTRY = CollectorRegistry()


def _counter(name: str, says: str, *labels: str) -> Counter:
    return Counter(name, says, labels, registry=REGISTRY)


def _histogram(name: str, says: str, *labels: str, buckets: tuple[float, ...] = FAST) -> Histogram:
    return Histogram(name, says, labels, buckets=buckets, registry=REGISTRY)


_TOTALS: Final[Mapping[Operation, Counter]] = {
    "store": _counter("mira_store_total", "Memories stored (new ones)."),
    "recall": _counter("mira_recall_total", "Contexts recalled."),
    "search": _counter("mira_search_total", "Searches in memories without a context."),
    "embed": _counter("mira_embed_total", "Calls of the embedding model."),
}
_DURATIONS: Final[Mapping[Operation, Histogram]] = {
    name: _histogram(f"mira_{name}_duration_seconds", f"How long each {name} took.")
    for name in _TOTALS
}
_ERRORS = _counter("mira_errors_total", "What failed, by error code.", "operation", "code")
_STAGES = _histogram("mira_recall_stage_seconds", "Parts of a recall.", "stage")
_POOL = _histogram("mira_recall_pool", "Memories that were ranked.", buckets=COUNTS)
_CANDIDATES = _histogram("mira_recall_candidates", "Memories that came up.", buckets=COUNTS)
_SELECTED = _counter("mira_recall_selected_total", "Memories chosen, by form.", "mode")
_USED = _histogram("mira_recall_tokens_used", "Tokens of contexts.", buckets=TOKENS)
_BUDGET = _histogram("mira_recall_tokens_budget", "Tokens contexts may have.", buckets=TOKENS)
_QUALITY = _histogram(
    "mira_recall_allocation_quality",
    "Value of what was chosen over the bound of the best choice.",
    buckets=SHARES,
)
_LEXICAL = _counter(
    "mira_recall_lexical_failures_total", "Recalls without one word for the full text search."
)
_DEGRADED = _counter("mira_recall_degraded_total", "Recalls that did without a part.", "part")
_WEBHOOKS = _counter("mira_webhook_attempts_total", "Deliveries tried, by outcome.", "outcome")
_HELD = _counter("mira_webhook_held_total", "Deliveries put off by an open circuit breaker.")
_WEBHOOK_S = _histogram("mira_webhook_duration_seconds", "How long an endpoint took to answer.")

_STAGE_OF: Final[Mapping[Stage, Histogram]] = {
    name: _STAGES.labels(name)
    for name in ("prepare", "embed", "candidates", "rank", "allocate", "render")
}


class _Timer:
    """Observes how long its block took, whatever ended it."""

    __slots__ = ("_into", "_started")

    def __init__(self, into: Histogram) -> None:
        self._into = into

    def __enter__(self) -> None:
        self._started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._into.observe(time.perf_counter() - self._started)


def stage(name: Stage) -> _Timer:
    """Times one part of a recall: `with metrics.stage("embed"): …`."""
    return _Timer(_STAGE_OF[name])


@contextmanager
def operation(name: Operation) -> Iterator[None]:
    """Counts and times an operation. One that raises a MiraError counts as an error only."""
    started = time.perf_counter()
    try:
        yield
    except MiraError as error:
        failed(name, error)
        raise
    _TOTALS[name].inc()
    _DURATIONS[name].observe(time.perf_counter() - started)


def failed(name: Operation, error: MiraError) -> None:
    _ERRORS.labels(name, error.code).inc()


def stored(count: int) -> None:
    """So many new memories."""
    _TOTALS["store"].inc(count)


@contextmanager
def storing() -> Iterator[None]:
    """Times a write of several memories at once, which `stored` counts."""
    with _Timer(_DURATIONS["store"]):
        yield


def looked_at(count: int) -> None:
    """So many memories were near or held a word, and were ranked."""
    _POOL.observe(count)


def recalled(
    *,
    candidates: int,
    selected: Mapping[str, int],
    tokens: int,
    budget_tokens: int,
    quality: float | None,
) -> None:
    """The shape of one recalled context; `selected` is how many memories came in each mode."""
    _CANDIDATES.observe(candidates)
    for mode, count in selected.items():
        _SELECTED.labels(mode).inc(count)
    _USED.observe(tokens)
    _BUDGET.observe(budget_tokens)
    if quality is not None:
        _QUALITY.observe(quality)


def lexical_failed() -> None:
    """A question held no word that full text search could look for: meaning alone decided."""
    _LEXICAL.inc()


def degraded(part: str) -> None:
    """A recall did without a part of itself, which is named by a word of ours."""
    _DEGRADED.labels(part).inc()


def webhook_timer() -> _Timer:
    return _Timer(_WEBHOOK_S)


def webhook_attempted(outcome: str) -> None:
    """delivered, retried or dead."""
    _WEBHOOKS.labels(outcome).inc()


def webhooks_held(count: int) -> None:
    _HELD.inc(count)


def registry() -> CollectorRegistry:
    """What to expose: the sums of all processes that share the directory, or this process's own."""
    if not os.environ.get(MULTIPROC_DIR):
        return REGISTRY
    together = CollectorRegistry()
    MultiProcessCollector(together)  # type: ignore[no-untyped-call]
    return together
