"""The front door: do what a model asked for, and find the tools of other apps."""

from __future__ import annotations

from toolbox.execution import execute
from toolbox.registry import discover

__all__ = ["discover", "execute"]
