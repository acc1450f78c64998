"""Which tools there are. A tool is one file in toolbox/tools/; the file, its function and the tool
share a name, and the function's docstring is what the model reads.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from importlib import import_module

from pydantic import BaseModel

from toolbox.constants import CALL_LIMIT_S
from toolbox.types import Tool, ToolFunction

_NAME = re.compile(r"[a-z][a-z0-9_]{1,49}")
_registered: dict[str, Tool] = {}


def tool(
    name: str,
    *,
    arguments: type[BaseModel],
    summary: str = "",
    limit_s: float = CALL_LIMIT_S,
    parallel: bool | Collection[str] = False,
) -> Callable[[ToolFunction], ToolFunction]:
    """Register a tool. `summary` is the quiet line that a person sees when it was used.

    `parallel`: its calls change nothing and may be done side by side; all of them, or those whose
    argument `operation` is one of these.

    Raises ValueError for a name that is taken, malformed or not the function's and the file's, and
    for a tool or an argument that is not explained.
    """

    def register(function: ToolFunction) -> ToolFunction:
        if name in _registered:
            raise ValueError(f"There is a tool {name!r} already.")
        _registered[name] = made(
            name, function, arguments, summary=summary, limit_s=limit_s, parallel=parallel
        )
        return function

    return register


def made(
    name: str,
    function: ToolFunction,
    arguments: type[BaseModel],
    *,
    summary: str = "",
    limit_s: float = CALL_LIMIT_S,
    parallel: bool | Collection[str] = False,
) -> Tool:
    """A tool, checked and not registered. Raises ValueError as `tool` does."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be a tool's name: a-z, 0-9 and _, up to 50.")
    package, _, module = function.__module__.rpartition(".")
    if function.__name__ != name or (package.endswith("tools") and module != name):
        raise ValueError(f"The tool {name!r}, its function and its file must share one name.")
    description = inspect.getdoc(function)
    if not description:
        raise ValueError(f"The tool {name!r} has no docstring: what would the model read?")
    silent = [key for key, field in arguments.model_fields.items() if not field.description]
    if silent:
        raise ValueError(f"The tool {name!r} does not explain {', '.join(silent)}.")
    return Tool(
        name=name,
        description=description,
        arguments=arguments,
        run=function,
        summary=summary or f"used {name.replace('_', ' ')}",
        limit_s=limit_s,
        parallel=parallel if isinstance(parallel, bool) else frozenset(parallel),
    )


def discover(name: str = "toolbox.tools") -> None:
    """Import every module of a package of tools, which registers them."""
    package = import_module(name)  # by name: its modules import this one
    for module in pkgutil.iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")


def find(name: str) -> Tool | None:
    return _registered.get(name)


def every() -> list[Tool]:
    """All tools by name, so that the prompt before them stays the same and cached."""
    return [_registered[name] for name in sorted(_registered)]


@contextmanager
def temporarily(*added: Tool) -> Iterator[None]:
    """For the length of a test these tools exist, in the place of any of the same name."""
    before = dict(_registered)
    _registered.update({one.name: one for one in added})
    try:
        yield
    finally:
        _registered.clear()
        _registered.update(before)
