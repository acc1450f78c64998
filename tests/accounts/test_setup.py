from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import time_machine
from django.db import connections
from django.test import Client

from mira_site.accounts import selectors, services
from mira_site.accounts.models import User
from mira_site.errors import Conflict
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db

FORM = {
    "username": "olga",
    "email": "olga@example.org",
    "password": "a-long-first-password",
    "timezone": "Europe/Vienna",
}


def test_the_link_makes_a_signed_in_staff_superuser_and_leads_to_the_chat(client):
    link = selectors.setup_link_path()
    assert b"data-timezone" in client.get(link).content
    answer = client.post(link, FORM)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    olga = User.objects.get()
    assert (olga.is_staff, olga.is_superuser, olga.timezone) == (True, True, "Europe/Vienna")
    assert client.get("/api/v1/me/").json()["username"] == "olga"


def test_the_link_is_dead_once_there_is_an_account(client):
    link = selectors.setup_link_path()
    UserFactory()
    assert selectors.setup_link_path() is None
    assert client.get(link).status_code == 409
    assert client.post(link, FORM).status_code == 409
    assert User.objects.count() == 1


def test_a_made_up_link_makes_nothing(client):
    assert client.post("/setup/made-up/", FORM).status_code == 404
    assert not User.objects.exists()


def test_the_link_runs_out_after_a_day(client):
    with time_machine.travel("2026-03-01T00:00:00Z", tick=False):
        link = selectors.setup_link_path()
    with time_machine.travel("2026-03-02T00:01:00Z", tick=False):
        assert client.post(link, FORM).status_code == 404
    assert not User.objects.exists()


def test_a_weak_password_is_refused_with_the_reason(client):
    link = selectors.setup_link_path()
    answer = client.post(link, {**FORM, "password": "password"})
    assert answer.status_code == 200
    assert answer.context["form"].errors["password"]
    assert not User.objects.exists()


def test_without_script_the_zone_comes_from_the_cookie_or_is_utc(client):
    client.cookies["timezone"] = "America%2FLima"
    client.post(selectors.setup_link_path(), {**FORM, "timezone": ""})
    assert User.objects.get().timezone == "America/Lima"


@pytest.mark.django_db(transaction=True)
def test_two_posts_at_the_same_moment_make_one_account():
    token = selectors.setup_link_path().split("/")[2]

    def make(number: int) -> str:
        try:
            services.create_first_account(
                token=token,
                username=f"owner{number}",
                email=f"owner{number}@example.org",
                password="a-long-first-password",
            )
        except Conflict:
            return "refused"
        finally:
            connections.close_all()
        return "made"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(make, range(2))) == ["made", "refused"]
    assert User.objects.count() == 1


def test_an_open_sign_up_page_does_not_make_the_first_account(settings):
    settings.SIGNUP = "open"
    page = Client().post(
        "/accounts/signup/",
        {"username": "eve", "email": "eve@example.org", "password1": "a-long-password-1"},
    )
    assert page.status_code == 200
    assert not User.objects.exists()
