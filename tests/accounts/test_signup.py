from __future__ import annotations

import datetime as dt

import pytest
import time_machine
from django.test import Client
from django.utils import timezone

from mira_site.accounts import services
from mira_site.accounts.models import Invitation, User

pytestmark = pytest.mark.django_db


def form(name: str, **changes: str) -> dict[str, str]:
    said = {"username": name, "email": f"{name}@example.org", "password1": f"long-for-{name}-17"}
    return {**said, **changes}


def sign_up(client: Client, name: str, **changes: str):
    return client.post("/accounts/signup/", form(name, **changes))


def test_open_sign_up_makes_an_account_in_the_browsers_zone(client, settings, staff):
    settings.SIGNUP = "open"
    answer = sign_up(client, "carol", timezone="Europe/Vienna")
    assert (answer.status_code, answer["Location"]) == (302, "/")
    carol = User.objects.get(username="carol")
    assert (carol.timezone, carol.is_staff) == ("Europe/Vienna", False)


def test_the_page_asks_the_browser_for_its_zone(client, settings, staff):
    settings.SIGNUP = "open"
    page = client.get("/accounts/signup/").content.decode()
    assert '<input type="hidden" name="timezone" data-timezone' in page


def test_a_zone_that_does_not_exist_becomes_utc(client, settings, staff):
    settings.SIGNUP = "open"
    sign_up(client, "carol", timezone="../../etc/passwd")
    assert User.objects.get(username="carol").timezone == "UTC"


@pytest.mark.parametrize("mode", ["invite", "closed"])
def test_without_an_invitation_a_kind_page_says_so(client, settings, staff, mode):
    settings.SIGNUP = mode
    assert "account/signup_closed.html" in [
        template.name for template in client.get("/accounts/signup/").templates
    ]
    sign_up(client, "carol")
    assert not User.objects.filter(username="carol").exists()


def test_closed_means_closed_for_invitations_made_before(client, settings, staff):
    token = services.invite(by=staff).token
    settings.SIGNUP = "closed"
    client.get(f"/invitation/{token}/")
    sign_up(client, "carol")
    assert not User.objects.filter(username="carol").exists()


def test_an_invitation_admits_one_person_once(client, settings, staff):
    settings.SIGNUP = "invite"
    token = services.invite(by=staff).token
    assert client.get(f"/invitation/{token}/")["Location"] == "/accounts/signup/"
    assert sign_up(client, "carol").status_code == 302
    invitation = Invitation.objects.get()
    assert invitation.used_by == User.objects.get(username="carol")

    second = Client()
    assert second.get(f"/invitation/{token}/").status_code == 404
    sign_up(second, "dave")
    assert not User.objects.filter(username="dave").exists()


def test_two_who_opened_the_same_invitation_get_one_account(settings, staff):
    settings.SIGNUP = "invite"
    token = services.invite(by=staff).token
    first, second = Client(), Client()
    first.get(f"/invitation/{token}/")
    second.get(f"/invitation/{token}/")
    sign_up(first, "carol")
    sign_up(second, "dave")
    assert User.objects.filter(username__in=["carol", "dave"]).count() == 1


def test_an_invitation_used_between_page_and_save_is_refused_and_undone(
    client, settings, staff, bob, monkeypatch
):
    """The last check stands behind the page's: here somebody else is quicker in between."""
    settings.SIGNUP = "invite"
    issued = services.invite(by=staff)
    client.get(f"/invitation/{issued.token}/")
    real_admit = services.admit

    def after_somebody_else(**arguments):
        Invitation.objects.update(used_at=timezone.now(), used_by=bob)
        real_admit(**arguments)

    monkeypatch.setattr(services, "admit", after_somebody_else)
    answer = sign_up(client, "carol")
    assert answer.status_code == 403
    assert b"Ask for a new one" in answer.content
    assert not User.objects.filter(username="carol").exists()


def test_an_invitation_bound_to_an_address_admits_no_other(client, settings, staff):
    settings.SIGNUP = "invite"
    token = services.invite(by=staff, email="Carol@example.org").token
    assert "carol%40" in client.get(f"/invitation/{token}/")["Location"].lower()
    answer = sign_up(client, "mallory")
    assert answer.context["form"].errors["email"]
    assert sign_up(client, "carol").status_code == 302


def test_an_invitation_runs_out_and_can_be_withdrawn(client, settings, staff):
    settings.SIGNUP = "invite"
    issued, withdrawn = services.invite(by=staff), services.invite(by=staff)
    Invitation.objects.filter(pk=withdrawn.id).delete()
    assert client.get(f"/invitation/{withdrawn.token}/").status_code == 404
    with time_machine.travel(timezone.now() + dt.timedelta(days=14, minutes=1)):
        assert client.get(f"/invitation/{issued.token}/").status_code == 404


def test_only_the_hash_of_an_invitation_is_stored(staff):
    token = services.invite(by=staff).token
    row = Invitation.objects.values().get()
    assert token not in str(row)
    assert len(row["token_hash"]) == 64


def test_a_username_cannot_look_like_an_address(client, settings, staff, alice):
    settings.SIGNUP = "open"
    answer = sign_up(client, "x", username="alice@example.org")
    assert answer.context["form"].errors["username"]


def test_an_address_has_one_account(client, settings, staff, alice):
    settings.SIGNUP = "open"
    answer = sign_up(client, "carol", email="Alice@example.org")
    assert answer.context["form"].errors["email"]
    assert not User.objects.filter(username="carol").exists()
