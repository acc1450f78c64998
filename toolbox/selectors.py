"""What tools there are for a turn."""

from __future__ import annotations

from mira_site.llm.types import ToolSpec
from toolbox import registry


def specs() -> tuple[ToolSpec, ...]:
    """The tools as a model is told of them, always in the same order."""
    return tuple(tool.spec for tool in registry.every())
