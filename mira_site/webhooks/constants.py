"""Numbers of the webhooks. Source of most: spec budgeted-recall 8.3 and 8.4."""

from __future__ import annotations

from datetime import timedelta

ENDPOINTS_MAX = 10  # of one person
URL_MAX_CHARS = 2_000
SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"  # noqa: S105 (what marks a secret as one of ours)
SIGNATURE_VERSION = "v1"

# Waits before the second and each further attempt; after the last one the delivery is dead.
RETRY_AFTER_S = (10, 60, 600, 3_600, 21_600)
RETRY_JITTER = 0.2  # share of the wait it may be longer or shorter, so that retries spread out
KEPT_FOR = timedelta(days=30)

CONNECT_TIMEOUT_S = 5.0
ATTEMPT_TIMEOUT_S = 10.0  # from the first byte sent to the status line received
RUN_MAX = 50  # deliveries of one endpoint in one task; then others have a turn
RUN_MAX_S = 20.0
CLAIM_S = 60.0  # one worker at a time for one endpoint; longer than any single attempt

BREAKER_FAILURES = 5
BREAKER_OPEN_FOR = timedelta(seconds=30)
BREAKER_SUCCESSES = 2

PORT_UNPRIVILEGED = 1_024  # below it only the web's own ports are called
WEB_PORTS = frozenset({80, 443})
# Services that speak no HTTP and may do something with what they are sent.
PORTS_REFUSED = frozenset({3306, 5432, 6379, 6667, 11211, 27017})

PAGE_SIZE = 50
PAGE_SIZE_MAX = 200
SWEEP_MAX = 1_000  # endpoints that one sweep starts
WANTED_FOR_S = 10.0  # how long a process remembers who wants to hear of recalls
