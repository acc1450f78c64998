"""Wiring and ground of MIRA (docs/architecture.md)."""
