"""The front door: do what a model asked for, and find the tools of other apps."""

from __future__ import annotations

from toolbox.execution import execute, may_run_beside_others
from toolbox.parallel import side_by_side
from toolbox.registry import discover

__all__ = ["discover", "execute", "may_run_beside_others", "side_by_side"]
