"""Encrypted model fields, and the change of their keys.

Values are Fernet tokens (AES-128-CBC, HMAC-SHA256) kept as raw bytes, so that a file grows by
58 to 73 bytes and not by a third. The first of FIELD_ENCRYPTION_KEYS encrypts, all of them decrypt.
Why not django-cryptography: docs/adr/0010.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.apps import apps
from django.conf import settings
from django.db import connection, models, transaction

from mira_site.errors import SettingError

UNREADABLE = (
    "FIELD_ENCRYPTION_KEYS holds no key that opens what is stored. Put the key it was encrypted"
    " with back at the end of the list, and take it out only after rotate_encryption_keys."
)


def encrypt(plain: bytes) -> bytes:
    return urlsafe_b64decode(_all_keys().encrypt(plain))


def decrypt(stored: bytes) -> bytes:
    """Raises SettingError if none of the keys opens it."""
    return _open(_all_keys(), stored)


def _all_keys() -> MultiFernet:
    return _fernet(tuple(settings.FIELD_ENCRYPTION_KEYS))


@lru_cache(maxsize=8)
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def _open(keys: MultiFernet, stored: bytes) -> bytes:
    try:
        return keys.decrypt(urlsafe_b64encode(stored))
    except InvalidToken as error:
        raise SettingError(UNREADABLE) from error


class EncryptedField(models.Field):
    """A column of ciphertext. It can be asked for nothing but NULL, and no form shows it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("editable", False)
        super().__init__(*args, **kwargs)

    def get_internal_type(self) -> str:
        return "BinaryField"

    def get_lookup(self, lookup_name: str) -> Any:
        return super().get_lookup(lookup_name) if lookup_name == "isnull" else None

    def get_transform(self, lookup_name: str) -> Any:
        return None

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return None if value is None else encrypt(self.as_bytes(value))

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return None if value is None else self.as_value(decrypt(bytes(value)))

    def as_bytes(self, value: Any) -> bytes:
        return bytes(value)

    def as_value(self, plain: bytes) -> Any:
        return plain


class EncryptedBytesField(EncryptedField):
    """Bytes, encrypted at rest."""


class EncryptedTextField(EncryptedField):
    """Text, encrypted at rest."""

    def as_bytes(self, value: Any) -> bytes:
        return str(value).encode("utf-8")

    def as_value(self, plain: bytes) -> str:
        return plain.decode("utf-8")


# --- Change of keys ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptedTable:
    """A table with encrypted columns."""

    name: str
    key: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotated:
    """What became of the values of one row."""

    changed: int
    unreadable: int


def encrypted_tables() -> list[EncryptedTable]:
    """Every table of a model with encrypted fields, by name."""
    found = {}
    for model in apps.get_models(include_auto_created=True):
        meta = model._meta
        columns = [
            str(field.column) for field in meta.local_fields if isinstance(field, EncryptedField)
        ]
        if columns and meta.managed and not meta.proxy and meta.pk is not None:
            found[meta.db_table] = EncryptedTable(
                name=meta.db_table, key=str(meta.pk.column), columns=tuple(columns)
            )
    return [found[name] for name in sorted(found)]


def keys_of(table: EncryptedTable, *, batch: int = 500) -> Iterator[list[Any]]:
    """The primary keys of a table in order. Runs inside `all_users`."""
    name, key = _quoted(table.name), _quoted(table.key)
    after: Any = None
    while True:
        where, params = (f"WHERE {key} > %s", [after]) if after is not None else ("", [])
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT {key} FROM {name} {where} ORDER BY {key} LIMIT %s",  # noqa: S608
                [*params, batch],
            )
            found = [row[0] for row in cursor.fetchall()]
        if not found:
            return
        yield found
        after = found[-1]


def rotate(table: EncryptedTable, row_id: Any, *, dry_run: bool = False) -> Rotated:
    """Encrypt the values of one row with the first key, where another one made them.

    The row is locked, so a change at the same moment is not lost. What no key opens stays as it is.
    """
    first = _fernet(tuple(settings.FIELD_ENCRYPTION_KEYS[:1]))
    name, key = _quoted(table.name), _quoted(table.key)
    columns = [_quoted(column) for column in table.columns]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(columns)} FROM {name} WHERE {key} = %s FOR UPDATE",  # noqa: S608
            [row_id],
        )
        row: Sequence[Any] = cursor.fetchone() or ()
        fresh, unreadable = {}, 0
        for column, stored in zip(columns, row, strict=False):
            if stored is None or _opens(first, stored):
                continue
            try:
                fresh[column] = encrypt(decrypt(bytes(stored)))
            except SettingError:
                unreadable += 1
        if fresh and not dry_run:
            changes = ", ".join(f"{column} = %s" for column in fresh)
            cursor.execute(
                f"UPDATE {name} SET {changes} WHERE {key} = %s",  # noqa: S608
                [*fresh.values(), row_id],
            )
    return Rotated(changed=len(fresh), unreadable=unreadable)


def _opens(keys: MultiFernet, stored: Any) -> bool:
    try:
        _open(keys, bytes(stored))
    except SettingError:
        return False
    return True


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)
