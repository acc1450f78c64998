from __future__ import annotations

import datetime as dt

import pytest
import time_machine
from django.utils import timezone
from knox.models import AuthToken

from mira_site import isolation
from mira_site.accounts import selectors, services
from mira_site.accounts.throttles import TokenByAddress, network

pytestmark = pytest.mark.django_db

URL = "/api/v1/auth/token/"


def ask(api, name: str, password: str, **headers: str):
    return api.post(URL, {"username": name, "password": password}, format="json", **headers)


def with_token(api, user) -> str:
    token = services.issue_token(user=user).token
    api.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    return token


@pytest.mark.parametrize("name", ["alice", "alice@example.org"])
def test_a_password_buys_a_token_that_works(api, alice, name):
    answer = ask(api, name, "alice-password-1")
    assert answer.status_code == 200
    assert set(answer.json()) == {"token", "expires_at"}
    api.credentials(HTTP_AUTHORIZATION=f"Token {answer.json()['token']}")
    assert api.get("/api/v1/me/").json()["id"] == str(alice.pk)


def test_only_a_hash_of_the_token_is_stored(api, alice):
    token = ask(api, "alice", "alice-password-1").json()["token"]
    assert token not in str(AuthToken.objects.values().get())


def test_a_token_ends_after_90_days(api, alice):
    token = with_token(api, alice)
    with time_machine.travel(timezone.now() + dt.timedelta(days=89)):
        assert api.get("/api/v1/me/").status_code == 200
    with time_machine.travel(timezone.now() + dt.timedelta(days=90, minutes=1)):
        assert api.get("/api/v1/me/").status_code == 401
        assert selectors.user_of_token(token) is None


def test_a_revoked_token_ends_and_the_others_stay(api, alice):
    other = services.issue_token(user=alice).token
    with_token(api, alice)
    assert api.delete(URL).status_code == 204
    assert api.get("/api/v1/me/").status_code == 401
    assert selectors.user_of_token(other) == alice


def test_revoking_needs_a_token(api, alice):
    assert api.delete(URL).status_code == 401
    api.force_login(alice)
    assert api.delete(URL).status_code == 401


def test_wrong_password_unknown_name_and_closed_account_get_the_same_answer(api, alice, bob):
    bob.is_active = False
    bob.save()
    answers = [
        ask(api, "alice", "wrong"),
        ask(api, "nobody", "wrong"),
        ask(api, "bob", "bob-password-1"),
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.content for answer in answers}) == 1
    assert answers[0]["Content-Type"] == "application/problem+json"
    assert answers[0]["WWW-Authenticate"] == "Token"


def test_a_closed_accounts_token_is_refused(api, alice):
    with_token(api, alice)
    services.set_access(user=alice, is_active=False, is_staff=False, is_superuser=False)
    assert api.get("/api/v1/me/").status_code == 401


@pytest.mark.parametrize("token", ["", "mira_nonsense", "müll", "a b"])
def test_a_bad_token_is_401(api, token):
    api.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    assert api.get("/api/v1/me/").status_code == 401


def test_asking_too_often_from_one_address_is_429_with_retry_after(api, alice):
    for number in range(10):
        ask(api, f"somebody{number}", "wrong")
    answer = ask(api, "alice", "alice-password-1")
    assert answer.status_code == 429
    assert answer["Content-Type"] == "application/problem+json"
    assert 0 < int(answer["Retry-After"]) <= 60
    assert ask(api, "alice", "alice-password-1", REMOTE_ADDR="10.9.8.7").status_code == 200


def test_guessing_at_one_account_from_many_addresses_is_429(api, alice):
    answers = [
        ask(api, "Alice ", "wrong", REMOTE_ADDR=f"10.0.0.{number}") for number in range(1, 8)
    ]
    assert answers[0].status_code == 401
    assert answers[-1].status_code == 429
    assert int(answers[-1]["Retry-After"]) > 0


def test_both_doors_count_failures_together(api, client, alice):
    for _ in range(5):
        client.post("/accounts/login/", {"login": "alice", "password": "wrong"})
    assert ask(api, "alice", "alice-password-1", REMOTE_ADDR="10.9.8.7").status_code == 429


def test_an_account_gets_twenty_tokens_an_hour_at_most(api, alice):
    answers = [
        ask(api, "alice", "alice-password-1", REMOTE_ADDR=f"10.0.0.{number}")
        for number in range(1, 22)
    ]
    assert [answer.status_code for answer in answers] == [200] * 20 + [429]


def test_a_forged_forwarded_address_does_not_evade_the_limit(api):
    for number in range(10):
        ask(api, f"n{number}", "wrong", HTTP_X_FORWARDED_FOR=f"1.2.3.{number}")
    assert ask(api, "x", "wrong", HTTP_X_FORWARDED_FOR="9.9.9.9").status_code == 429


def test_behind_one_trusted_proxy_its_part_of_the_header_is_the_address(rf, settings):
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "NUM_PROXIES": 1}
    keys = {
        TokenByAddress().get_cache_key(rf.get("/", HTTP_X_FORWARDED_FOR=forwarded), None)
        for forwarded in ("6.6.6.6, 1.1.1.1", "7.7.7.7, 1.1.1.1")
    }
    assert keys == {"throttle:token:address:1.1.1.1"}


def test_an_ipv6_customer_is_one_network():
    assert network("2001:db8:1:2:3::4") == network("2001:db8:1:2:ffff::1")
    assert network("2001:db8:1:3::1") != network("2001:db8:1:2::1")


@pytest.mark.parametrize("body", [[], {"username": "alice"}, {"username": {"a": 1}}])
def test_a_malformed_request_is_400(api, body):
    answer = api.post(URL, body, format="json")
    assert answer.status_code == 400
    assert "password" in answer.json()["errors"] or body == []


def test_me_says_who_i_am(api, alice):
    with isolation.acting_as(alice.pk):
        services.record_use(user=alice, at=timezone.now())
    with_token(api, alice)
    me = api.get("/api/v1/me/").json()
    assert dt.datetime.fromisoformat(me.pop("created_at")) == alice.date_joined
    assert me == {
        "id": str(alice.pk),
        "username": "alice",
        "email": "alice@example.org",
        "timezone": "UTC",
        "use_days": 1,
        "name": "",
        "settings": {
            "theme": "system",
            "effort": "automatic",
            "observer": True,
            "quiet_minutes": 60,
            "fixed_zone": False,
            "language": "",
            "monthly_cap": None,
            "models": {},
        },
    }


def test_me_needs_somebody(api):
    answer = api.get("/api/v1/me/")
    assert answer.status_code == 401
    assert answer["Content-Type"] == "application/problem+json"


def test_zone_and_theme_can_be_changed_alone(api, alice):
    with_token(api, alice)
    api.patch("/api/v1/me/", {"timezone": "Europe/Vienna"}, format="json")
    me = api.patch("/api/v1/me/", {"settings": {"theme": "dark"}}, format="json").json()
    assert (me["timezone"], me["settings"]["theme"]) == ("Europe/Vienna", "dark")
    alice.refresh_from_db()
    assert (alice.timezone, alice.preferences) == ("Europe/Vienna", {"theme": "dark"})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"timezone": ""}, "timezone"),
        ({"timezone": None}, "timezone"),
        ({"settings": {"theme": "pink"}}, "settings"),
        ({"settings": {"colour": "pink"}}, "settings"),
        ({"settings": []}, "settings"),
        ({"email": "new@example.org"}, "email"),
        ({"is_staff": True}, "is_staff"),
    ],
)
def test_a_bad_change_is_400_names_the_field_and_changes_nothing(api, alice, change, field):
    with_token(api, alice)
    answer = api.patch("/api/v1/me/", change, format="json")
    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"
    assert list(answer.json()["errors"]) == [field]
    alice.refresh_from_db()
    assert (alice.timezone, alice.preferences, alice.is_staff) == ("UTC", {}, False)


def test_the_schema_describes_these_operations(client):
    paths = client.get("/api/schema/?format=json").json()["paths"]
    assert set(paths["/api/v1/auth/token/"]) == {"post", "delete"}
    assert set(paths["/api/v1/me/"]) == {"get", "patch"}
