"""The pages that say that something went wrong."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from conversations import selectors
from mira_site.accounts.models import User

pytestmark = pytest.mark.django_db


def test_the_500_page_keeps_to_its_own_content_policy(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(user: User) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(selectors, "chat_state", broken)
    client = Client(raise_request_exception=False)
    client.force_login(alice)
    answer = client.get("/")
    html = answer.content.decode()
    nonces = set(re.findall(r'nonce="([^"]*)"', html))
    assert answer.status_code == 500
    assert len(nonces) == 1
    assert f"'nonce-{nonces.pop()}'" in answer.headers["Content-Security-Policy"]
    assert "a bug" not in html


def test_what_the_device_keeps_is_the_same_for_everybody(alice: User, client: Client) -> None:
    seen = [client.get("/offline/").content, client.get("/service-worker.js").content]
    assert alice.username.encode() not in b"".join(seen)
    worker = client.get("/service-worker.js")
    assert worker.headers["Content-Type"] == "text/javascript"
    assert "no-store" in worker.headers["Cache-Control"]
