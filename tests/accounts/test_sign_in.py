from __future__ import annotations

import re

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.core import mail

from mira_site.accounts.authentication import OneCheckBackend

pytestmark = pytest.mark.django_db


def sign_in(client, name: str, password: str):
    return client.post("/accounts/login/", {"login": name, "password": password})


@pytest.mark.parametrize("name", ["alice", "alice@example.org", "Alice@Example.org"])
def test_sign_in_by_name_or_address_and_out(client, alice, name):
    assert sign_in(client, name, "alice-password-1")["Location"] == "/"
    assert client.get("/api/v1/me/").status_code == 200
    client.post("/accounts/logout/")
    assert client.get("/api/v1/me/").status_code in {401, 403}


def test_a_closed_account_does_not_get_in(client, alice):
    alice.is_active = False
    alice.save()
    sign_in(client, "alice", "alice-password-1")
    assert client.get("/api/v1/me/").status_code in {401, 403}


def test_failures_are_limited_even_with_the_right_password_at_last(client, alice):
    for _ in range(5):
        sign_in(client, "alice", "wrong")
    answer = sign_in(client, "alice", "alice-password-1")
    assert "Too many" in str(answer.context["form"].errors)
    assert client.get("/api/v1/me/").status_code in {401, 403}


def test_a_known_and_an_unknown_address_cost_the_same_number_of_hashes(
    rf, settings, alice, monkeypatch
):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
    alice.set_password("alice-password-1")
    alice.save()
    hashes: list[str] = []
    real = PBKDF2PasswordHasher.encode

    def counted(self, password, salt, iterations=None):
        hashes.append(password)
        return real(self, password, salt, 1)

    monkeypatch.setattr(PBKDF2PasswordHasher, "encode", counted)
    costs = []
    for name in ("alice@example.org", "nobody@example.org"):
        hashes.clear()
        OneCheckBackend().authenticate(rf.post("/"), username=name, email=name, password="wrong")
        costs.append(len(hashes))
    assert costs[0] == costs[1]


def test_a_forgotten_password_is_replaced_by_mail(client, alice):
    client.post("/accounts/password/reset/", {"email": "alice@example.org"})
    path = re.search(r"http://testserver(/accounts/password/reset/key/\S+)", mail.outbox[0].body)[1]
    form_page = client.get(path, follow=True)
    client.post(
        form_page.redirect_chain[-1][0],
        {"password1": "an-entirely-new-one-1", "password2": "an-entirely-new-one-1"},
    )
    assert sign_in(client, "alice", "an-entirely-new-one-1")["Location"] == "/"


def test_resetting_an_unknown_address_looks_the_same(client, alice):
    known = client.post("/accounts/password/reset/", {"email": "alice@example.org"})
    unknown = client.post("/accounts/password/reset/", {"email": "nobody@example.org"})
    assert (known.status_code, known["Location"]) == (unknown.status_code, unknown["Location"])


def test_a_mailed_code_signs_in(client, alice):
    client.post("/accounts/login/code/", {"email": "alice@example.org"})
    code = re.search(r"^\s*([A-Z0-9]{3,}-?[A-Z0-9]{3,})\s*$", mail.outbox[0].body, re.M)[1]
    client.post("/accounts/login/code/confirm/", {"code": code})
    assert client.get("/api/v1/me/").status_code == 200


def test_a_wrong_code_does_not(client, alice):
    client.post("/accounts/login/code/", {"email": "alice@example.org"})
    client.post("/accounts/login/code/confirm/", {"code": "WRONG1"})
    assert client.get("/api/v1/me/").status_code in {401, 403}
