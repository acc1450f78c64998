"""Wiring and ground of MIRA (docs/architecture.md)."""

import os

# Read when numpy is imported. Its threads wait for work by spinning, on the cores that the
# embedding model and PostgreSQL need: a recall took twice as long (docs/adr/0009-vector-index.md).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
