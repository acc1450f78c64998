"""Typed readers of the environment.

Every setting is read once, in settings.py, as `env.text("NAME", default)`. The file named by
`NAME_FILE` is an alternative to `NAME` (Docker and Kubernetes secrets). `.env` beside manage.py is
read first; the real environment wins over it. A bad value raises SettingError with its name.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Sequence
from pathlib import Path

from dotenv import load_dotenv

from mira_site.errors import SettingError

_REQUIRED = object()
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}
_KEY_BYTES = 32


def load(path: Path) -> None:
    """Read `path` (an .env file) into the environment without overriding what is set."""
    load_dotenv(path, override=False)


def _raw(name: str) -> str | None:
    value = os.environ.get(name)
    if value is not None:
        return value.strip()
    path = os.environ.get(f"{name}_FILE")
    if not path:
        return None
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingError(
            f"{name}_FILE: cannot read the file it names ({error.strerror})."
        ) from error


def text(name: str, default: object = _REQUIRED) -> str:
    """The setting as text; an empty value counts as unset."""
    value = _raw(name)
    if value:
        return value
    if default is _REQUIRED:
        raise SettingError(f"{name} is not set. Set it in the environment or in .env.")
    return str(default)


def flag(name: str, *, default: bool) -> bool:
    value = _raw(name)
    if value is None:
        return default
    if value.lower() in _TRUE:
        return True
    if value.lower() in _FALSE:
        return False
    raise SettingError(f"{name} must be one of true or false.")


def whole(name: str, default: int, *, low: int, high: int) -> int:
    """A whole number within low..high."""
    value = _raw(name)
    if not value:
        return default
    try:
        number = int(value)
    except ValueError as error:
        raise SettingError(f"{name} must be a whole number.") from error
    if not low <= number <= high:
        raise SettingError(f"{name} must lie between {low} and {high}.")
    return number


def choice(name: str, choices: Sequence[str], default: str) -> str:
    value = (_raw(name) or default).lower()
    if value not in choices:
        raise SettingError(f"{name} must be one of: {', '.join(choices)}.")
    return value


def words(name: str, default: Sequence[str] = ()) -> list[str]:
    """A comma-separated list, blanks dropped."""
    value = _raw(name)
    if not value:
        return list(default)
    return [part.strip() for part in value.split(",") if part.strip()]


def lists(name: str, heads: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Comma-separated lists under one of the given heads each: `reply=a,b; fast=c`."""
    found: dict[str, tuple[str, ...]] = {}
    for part in (_raw(name) or "").split(";"):
        if not part.strip():
            continue
        head, separator, listed = part.partition("=")
        if not separator or head.strip() not in heads:
            raise SettingError(
                f"{name} must look like {heads[0]}=first,second; {heads[-1]}=third, with the heads"
                f" {', '.join(heads)}."
            )
        found[head.strip()] = tuple(word.strip() for word in listed.split(",") if word.strip())
    return found


def keys(name: str) -> list[str]:
    """A comma-separated list of Fernet keys: 32 bytes each, in URL-safe base64."""
    found = words(name)
    for number, key in enumerate(found, start=1):
        try:
            size = len(base64.b64decode(key, altchars=b"-_", validate=True))
        except (binascii.Error, ValueError):
            size = 0
        if size != _KEY_BYTES:
            raise SettingError(
                f"{name}: number {number} is no key. A key is 32 random bytes in URL-safe base64,"
                " as cryptography.fernet.Fernet.generate_key() makes it."
            )
    return found
