"""The front door: do what a model asked for."""

from __future__ import annotations

from toolbox.execution import execute

__all__ = ["execute"]
