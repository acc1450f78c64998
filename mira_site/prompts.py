"""Prompt files: `<app>/prompts/<purpose>.system.md` and `.user.md`, filled strictly.

Placeholders are `$name` (`$$` is a dollar sign). A value that is missing, or that no placeholder
asks for, is an error at once; what is inserted is not looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Literal

Part = Literal["system", "user"]

ROOT = Path(__file__).resolve().parent.parent
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def quoted(text: str) -> str:
    """Text of a person, document or tool, made unable to close or open an element.

    It belongs between the tags of a named element; `in_quotes` is for its attributes.
    """
    if "&" in text or "<" in text or ">" in text:  # asking takes a tenth of the time
        return text.translate(_ESCAPES)
    return text


def in_quotes(text: str) -> str:
    """The same for the value of an attribute: it cannot end it and forge another one."""
    return quoted(text).replace('"', "&quot;")


@lru_cache(maxsize=256)
def load(app: str, purpose: str, part: Part) -> Template:
    """The prompt file as a template. Dots in `app` are folders.

    Raises FileNotFoundError if there is no such file, ValueError if it has a stray `$`.
    """
    path = _path(app, purpose, part)
    template = Template(path.read_text(encoding="utf-8").strip())
    if not template.is_valid():
        raise ValueError(f"{path.name} has a $ that starts no placeholder; write $$ for a dollar.")
    return template


def fill(app: str, purpose: str, part: Part, values: Mapping[str, str]) -> str:
    """One prompt with its values in place. Raises ValueError for a missing or unknown value."""
    template = load(app, purpose, part)
    _check(f"{app}/{purpose}.{part}", wanted=set(template.get_identifiers()), given=set(values))
    return template.substitute(values)


def question(app: str, purpose: str, values: Mapping[str, str]) -> tuple[str, str]:
    """The system and the user prompt of one purpose; a value may serve either or both.

    Raises ValueError for a missing or unknown value.
    """
    system, user = load(app, purpose, "system"), load(app, purpose, "user")
    wanted = {*system.get_identifiers(), *user.get_identifiers()}
    _check(f"{app}/{purpose}", wanted=wanted, given=set(values))
    return system.substitute(values), user.substitute(values)


def _path(app: str, purpose: str, part: Part) -> Path:
    return ROOT.joinpath(*app.split("."), "prompts", f"{purpose}.{part}.md")


def _check(name: str, *, wanted: set[str], given: set[str]) -> None:
    if missing := sorted(wanted - given):
        raise ValueError(f"The prompt {name} needs a value for {', '.join(missing)}.")
    if unknown := sorted(given - wanted):
        raise ValueError(f"The prompt {name} has no place for {', '.join(unknown)}.")
