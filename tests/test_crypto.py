"""What is encrypted is unreadable in the row, and keys can be changed."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.apps.registry import Apps
from django.core.exceptions import FieldError
from django.core.management import CommandError, call_command
from django.db import connection, models

from mira_site import crypto, env
from mira_site.errors import SettingError

OLD, NEW, LOST = (base64.urlsafe_b64encode(bytes([number]) * 32).decode() for number in (1, 2, 3))


class Secret(models.Model):
    """A row with both kinds of encrypted fields; a model of this test alone."""

    text = crypto.EncryptedTextField(null=True)
    content = crypto.EncryptedBytesField(default=b"")

    class Meta:
        app_label = "crypto_test"
        apps = Apps()

    def __str__(self) -> str:
        return f"secret {self.pk}"


TABLE = crypto.EncryptedTable(name=Secret._meta.db_table, key="id", columns=("text", "content"))


@pytest.fixture(autouse=True)
def table(db: None, settings, monkeypatch) -> Iterator[None]:
    settings.FIELD_ENCRYPTION_KEYS = [OLD]
    monkeypatch.setattr(crypto, "encrypted_tables", lambda: [TABLE])
    with connection.schema_editor() as editor:
        editor.create_model(Secret)
    yield
    with connection.schema_editor() as editor:
        editor.delete_model(Secret)


def raw() -> list[tuple[bytes | None, bytes]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT text, content FROM {TABLE.name} ORDER BY id")
        return [(text and bytes(text), bytes(content)) for text, content in cursor.fetchall()]


def rotate(**options: bool) -> str:
    return str(
        call_command("rotate_encryption_keys", stderr=StringIO(), stdout=StringIO(), **options)
    )


def test_a_value_comes_back_as_it_was():
    kept = Secret.objects.create(text="Grüße, 狐", content=b"\x00\xff" * 500)
    found = Secret.objects.get(pk=kept.pk)
    assert (found.text, found.content) == ("Grüße, 狐", b"\x00\xff" * 500)


def test_the_plain_text_is_not_in_the_row():
    Secret.objects.create(text="the word is swordfish", content=b"swordfish too")
    [(text, content)] = raw()
    assert text and b"swordfish" not in text
    assert b"swordfish" not in content


def test_the_same_text_twice_is_not_the_same_in_the_rows():
    Secret.objects.create(text="twice")
    Secret.objects.create(text="twice")
    assert len({text for text, _ in raw()}) == 2


def test_a_stored_value_is_hardly_longer_than_the_plain_one():
    Secret.objects.create(content=secrets.token_bytes(100_000))
    assert len(raw()[0][1]) <= 100_073


def test_nothing_and_empty_stay_apart():
    Secret.objects.create(text=None)
    Secret.objects.create(text="")
    assert list(Secret.objects.order_by("pk").values_list("text", flat=True)) == [None, ""]
    assert Secret.objects.filter(text__isnull=True).count() == 1


def test_what_is_encrypted_cannot_be_searched_by_mistake():
    with pytest.raises(FieldError):
        Secret.objects.filter(text="swordfish")


def test_updates_encrypt_too():
    kept = Secret.objects.create(text="before")
    Secret.objects.filter(pk=kept.pk).update(text="by update")
    kept.content = b"by bulk"
    Secret.objects.bulk_update([kept], ["content"])
    [(text, content)] = raw()
    assert text and b"update" not in text
    assert b"bulk" not in content
    found = Secret.objects.get()
    assert (found.text, found.content) == ("by update", b"by bulk")


def test_an_old_key_still_opens_what_it_closed(settings):
    Secret.objects.create(text="old")
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    assert Secret.objects.get().text == "old"


def test_a_wrong_key_is_one_error_that_says_what_to_do(settings):
    Secret.objects.create(text="old")
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    with pytest.raises(SettingError, match=r"FIELD_ENCRYPTION_KEYS .* Put the key"):
        Secret.objects.get()


def test_a_changed_byte_is_noticed():
    with pytest.raises(SettingError):
        crypto.decrypt(crypto.encrypt(b"whole")[:-1] + b"\x00")


def test_rotation_leaves_nothing_under_the_old_key(settings):
    for number in range(3):
        Secret.objects.create(text=f"text {number}", content=b"bytes")
    Secret.objects.create(text=None)
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    assert rotate() == "7 values encrypted with the first key."
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    assert list(Secret.objects.order_by("pk").values_list("text", flat=True)) == [
        "text 0",
        "text 1",
        "text 2",
        None,
    ]


def test_rotation_twice_changes_nothing_more(settings):
    Secret.objects.create(text="one")
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    rotate()
    before = raw()
    assert rotate().startswith("0 values")
    assert raw() == before


def test_a_dry_run_counts_and_changes_nothing(settings):
    Secret.objects.create(text="one")
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    before = raw()
    assert rotate(dry_run=True) == "2 values would be encrypted with the first key."
    assert raw() == before


def test_rotation_does_what_it_can_and_fails_on_what_no_key_opens(settings):
    settings.FIELD_ENCRYPTION_KEYS = [LOST]
    Secret.objects.create(text="gone")
    settings.FIELD_ENCRYPTION_KEYS = [OLD]
    kept = Secret.objects.create(text="here")
    lost = raw()[0]
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    with pytest.raises(CommandError, match=r"2 values encrypted .* 2 could not be read"):
        rotate()
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    assert Secret.objects.get(pk=kept.pk).text == "here"
    assert raw()[0] == lost


def test_keys_are_read_in_batches_and_all_of_them():
    Secret.objects.bulk_create(Secret(text=str(number)) for number in range(7))
    batches = list(crypto.keys_of(TABLE, batch=3))
    assert [len(batch) for batch in batches] == [3, 3, 1]


TRUNCATED = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"[:40]  # the same in every process of xdist


@pytest.mark.parametrize("bad", ["short", "not base64 !", TRUNCATED])
def test_a_malformed_key_stops_the_start_and_names_the_setting(monkeypatch, bad):
    monkeypatch.setenv("FIELD_ENCRYPTION_KEYS", f"{OLD},{bad}")
    with pytest.raises(SettingError, match="FIELD_ENCRYPTION_KEYS: number 2"):
        env.keys("FIELD_ENCRYPTION_KEYS")


def test_without_the_setting_there_is_one_key_in_a_private_file(settings):
    path = settings.MIRA_DATA_DIR / "secrets" / "field_encryption_key"
    assert path.stat().st_mode & 0o777 == 0o600
    Fernet(path.read_text())
