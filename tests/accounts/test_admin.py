from __future__ import annotations

import datetime as dt
import re

import pytest
import time_machine
from django.contrib import admin
from django.utils import timezone
from structlog.testing import capture_logs

from mira_site import isolation
from mira_site.accounts import services
from mira_site.accounts.models import Invitation, UseDay, User
from mira_site.admin import CuratedAdmin

pytestmark = pytest.mark.django_db

REASON = "Ticket 4711: the owner asked us to look."


class PrivateUseDayAdmin(CuratedAdmin):
    """Use-days stand in for any owned model with private text."""

    list_display = ["user", "day_on", "private_length"]
    private_fields = ["message_count"]


@pytest.fixture
def private_site(settings):
    """The site with use-days treated as private."""
    ordinary = admin.site._registry[UseDay]
    admin.site.unregister(UseDay)
    admin.site.register(UseDay, PrivateUseDayAdmin)
    settings.ROOT_URLCONF = "tests.accounts.private_urls"
    yield
    admin.site.unregister(UseDay)
    admin.site.register(UseDay, type(ordinary))


@pytest.fixture
def desk(client, staff):
    client.force_login(staff)
    return client


@pytest.fixture
def day(alice) -> UseDay:
    with isolation.acting_as(alice.pk):
        return UseDay.objects.create(
            user=alice, day_on="2026-03-01", first_message_at=timezone.now(), message_count=987654
        )


def page_of(day: UseDay, end: str = "change") -> str:
    return f"/admin/accounts/useday/{day.pk}/{end}/"


def open_private(desk, day: UseDay, reason: str = REASON):
    return desk.post(page_of(day, "private"), {"reason": reason})


# --- The site --------------------------------------------------------------------------------
def test_the_admin_signs_in_by_the_products_page(client, alice):
    assert client.get("/admin/")["Location"] == "/admin/login/?next=/admin/"
    page = client.get("/admin/login/?next=/admin/")
    assert page["Location"] == "/accounts/login/?next=%2Fadmin%2F"
    post = client.post("/admin/login/", {"username": "alice", "password": "alice-password-1"})
    assert post["Location"].startswith("/accounts/login/")


def test_those_who_are_not_staff_are_refused(client, alice):
    client.force_login(alice)
    assert client.get("/admin/", follow=True).status_code == 403


def test_staff_pages_run_in_the_logged_all_users_context_and_leave_it(desk, staff, day):
    with capture_logs() as logs:
        page = desk.get("/admin/accounts/useday/")
    assert b"2026" in page.content
    entered = [entry for entry in logs if entry["event"] == "isolation.all_users_entered"]
    assert [entry["reason"] for entry in entered] == ["admin admin:accounts_useday_changelist"]
    assert isolation.current() == isolation.NOBODY


def test_every_admin_page_opens(desk, alice, day):
    services.invite(by=alice)
    services.issue_token(user=alice)
    for model in (User, Invitation, UseDay):
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        assert desk.get(base).status_code == 200
        with isolation.all_users("test"):
            row = model.objects.first()
        assert desk.get(f"{base}{row.pk}/change/").status_code == 200
    assert desk.get("/admin/knox/authtoken/").status_code == 200


# --- Private text ----------------------------------------------------------------------------
def test_private_text_is_in_no_list_and_on_no_page_without_a_reason(private_site, desk, day):
    assert b"987654" not in desk.get("/admin/accounts/useday/").content
    page = desk.get(page_of(day))
    assert page.status_code == 200
    assert b"987654" not in page.content
    assert b"(6 characters)" in page.content


def test_a_reason_opens_it_and_is_logged_with_the_row(private_site, desk, day):
    assert open_private(desk, day)["Location"] == page_of(day)
    with capture_logs() as logs:
        assert b"987654" in desk.get(page_of(day)).content
    opened = [entry for entry in logs if entry["event"] == "admin.private_text_opened"]
    assert [(entry["row"], entry["reason"]) for entry in opened] == [(str(day.pk), REASON)]
    assert REASON in [entry.get("reason") for entry in logs if "all_users" in entry["event"]]
    assert b"987654" not in desk.get("/admin/accounts/useday/").content


@pytest.mark.parametrize("reason", ["", "because", " " * 40])
def test_a_reason_must_say_something(private_site, desk, day, reason):
    assert open_private(desk, day, reason).status_code == 200
    assert b"987654" not in desk.get(page_of(day)).content


def test_it_closes_after_fifteen_minutes(private_site, desk, day):
    open_private(desk, day)
    with time_machine.travel(timezone.now() + dt.timedelta(minutes=15, seconds=1)):
        assert b"987654" not in desk.get(page_of(day)).content


def test_a_reason_opens_one_persons_text_only(private_site, desk, day, bob):
    with isolation.acting_as(bob.pk):
        bobs = UseDay.objects.create(
            user=bob, day_on="2026-03-01", first_message_at=timezone.now(), message_count=123456
        )
    open_private(desk, day)
    assert b"123456" not in desk.get(page_of(bobs)).content


def test_the_list_answers_no_guesses_about_private_text(private_site, desk, day):
    answer = desk.get("/admin/accounts/useday/?message_count__startswith=98")
    assert answer.status_code == 400


def test_an_admin_that_lists_private_text_does_not_pass_the_checks():
    class Careless(PrivateUseDayAdmin):
        list_display = ["message_count"]

    assert "mira.E001" in [error.id for error in Careless(UseDay, admin.site).check()]


def test_curated_rows_are_neither_added_nor_changed_nor_deleted(desk, day):
    assert desk.get("/admin/accounts/useday/add/").status_code == 403
    assert desk.get(page_of(day, "delete")).status_code == 403
    assert desk.post(page_of(day), {"message_count": 1}).status_code == 403


# --- Accounts --------------------------------------------------------------------------------
def test_an_account_can_be_closed_and_its_tokens_end(desk, alice):
    services.issue_token(user=alice)
    page = f"/admin/accounts/user/{alice.pk}/change/"
    assert alice.password not in desk.get(page).content.decode()
    assert desk.post(page, {}).status_code == 302
    alice.refresh_from_db()
    assert (alice.is_active, alice.auth_token_set.count()) == (False, 0)


def test_nobody_changes_their_own_access(desk, staff):
    desk.post(f"/admin/accounts/user/{staff.pk}/change/", {})
    staff.refresh_from_db()
    assert (staff.is_active, staff.is_superuser) == (True, True)


def test_an_invitation_is_made_its_link_shown_once_and_it_works(desk, client, settings, staff):
    form = desk.get("/admin/accounts/invitation/add/")
    expires = form.context["adminform"].form.initial["expires_at"]
    assert abs(expires - timezone.now() - dt.timedelta(days=14)) < dt.timedelta(minutes=1)
    made = desk.post(
        "/admin/accounts/invitation/add/",
        {"email": "", "expires_at_0": f"{expires:%Y-%m-%d}", "expires_at_1": f"{expires:%H:%M:%S}"},
        follow=True,
    )
    link = re.search(rb"http://testserver(/invitation/[\w-]+/)", made.content)[1].decode()
    assert link.encode() not in desk.get("/admin/accounts/invitation/").content
    assert Invitation.objects.get().created_by == staff
    desk.logout()
    assert client.get(link)["Location"] == "/accounts/signup/"


def test_an_invitation_is_withdrawn_by_deleting_it(desk, staff):
    issued = services.invite(by=staff)
    desk.post(f"/admin/accounts/invitation/{issued.id}/delete/", {"post": "yes"})
    assert not Invitation.objects.exists()


def test_tokens_are_listed_without_their_hashes_and_can_be_revoked(desk, alice):
    services.issue_token(user=alice)
    digest = alice.auth_token_set.get().digest
    page = desk.get("/admin/knox/authtoken/").content.decode()
    assert "alice" in page
    assert digest not in re.sub(r'value="[^"]*"', "", page)
    assert desk.get("/admin/knox/authtoken/add/").status_code == 403
    assert desk.get(f"/admin/knox/authtoken/{digest}/change/").status_code == 403
    desk.post("/admin/knox/authtoken/", {"action": "revoke", "_selected_action": [digest]})
    assert not alice.auth_token_set.exists()
