"""The settings page: plain forms, each said in words, and nothing secret shown twice."""

from __future__ import annotations

import re
from io import StringIO

import pytest
from django.contrib.messages import get_messages
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from knox.models import AuthToken

from mira_site import isolation
from mira_site.accounts import selectors, services, zones
from mira_site.accounts.models import TokenName, User
from mira_site.llm import budget, choices, keys
from mira_site.llm.models import ModelCall, ProviderKey
from mira_site.llm.types import Tier
from tests.fake_anthropic import FakeAnthropic

pytestmark = pytest.mark.django_db

PAGE = "/settings/"
KEY = "sk-ant-alice-000000000000-A1b2"
YOU = {"section": "you", "name": "Ali", "timezone": "Europe/Vienna"}
THINKING = {"section": "thinking", "effort": "high", "quiet_minutes": "120"}


@pytest.fixture
def page(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def said(answer) -> str:
    return " ".join(str(message) for message in get_messages(answer.wsgi_request))


def key_of(user: User) -> str:
    with isolation.acting_as(user.pk):
        return keys.in_scope()


def test_a_stranger_is_sent_to_the_door(client):
    for name in ("settings", "usage", "usage_csv"):
        assert client.get(reverse(name)).status_code == 302


def test_every_section_is_there_and_english_is_the_only_language_of_pages(page):
    text = page.get(PAGE).content.decode()
    for section in ("you", "looks", "thinking", "key", "tokens", "devices"):
        assert f'id="{section}"' in text
    assert "These pages exist in English only." in text
    assert '<option value="Europe/Vienna">' in text


class TestYou:
    def test_name_and_zone_are_saved(self, page, alice):
        answer = page.post(PAGE, YOU)
        assert (answer.status_code, answer["Location"]) == (302, "/settings/#you")
        assert said(answer) == "Saved."
        alice.refresh_from_db()
        assert (alice.first_name, alice.timezone) == ("Ali", "Europe/Vienna")

    @pytest.mark.parametrize("city", ["vienna", "new york", "Europe/vienna", "UTC"])
    def test_a_city_is_enough(self, page, alice, city):
        page.post(PAGE, {**YOU, "timezone": city})
        alice.refresh_from_db()
        assert zones.is_known(alice.timezone)
        assert city.replace(" ", "_").casefold() in alice.timezone.casefold()

    def test_a_language_is_chosen_for_answers(self, page, alice):
        page.post(PAGE, {**YOU, "language": "de"})
        alice.refresh_from_db()
        assert selectors.language(alice) == "German"
        answer = page.post(PAGE, {**YOU, "language": "xx"})
        assert answer.status_code == 400
        page.post(PAGE, {**YOU, "language": ""})
        alice.refresh_from_db()
        assert selectors.language(alice) == ""

    def test_an_unknown_zone_is_refused_at_its_field_and_nothing_is_saved(self, page, alice):
        answer = page.post(PAGE, {**YOU, "timezone": "Mars"})
        assert answer.status_code == 400
        assert answer.context["forms"]["you"].errors == {
            "timezone": ["I know no such zone. Choose one of the list."]
        }
        alice.refresh_from_db()
        assert (alice.first_name, alice.timezone) == ("", "UTC")

    def test_a_fixed_zone_is_told_to_the_page(self, page):
        assert "data-fixed-zone" not in page.get(PAGE).content.decode()
        page.post(PAGE, {**YOU, "timezone": "UTC", "fixed_zone": "on"})
        assert "data-fixed-zone" in page.get(PAGE).content.decode()

    def test_a_zone_chosen_by_hand_is_not_taken_back_by_the_device(self, page):
        page.post(PAGE, YOU)
        assert "data-fixed-zone" in page.get(PAGE).content.decode()
        page.post(PAGE, YOU)
        assert "data-fixed-zone" not in page.get(PAGE).content.decode()


class TestLooks:
    def test_the_theme_is_the_accounts_on_every_page(self, page, alice):
        page.post(PAGE, {"section": "looks", "theme": "dark"})
        for address in (PAGE, "/settings/usage/"):
            assert ' data-theme="dark"' in page.get(address).content.decode()
        me = page.get("/api/v1/me/").json()
        assert me["settings"]["theme"] == "dark"

    def test_the_api_and_the_page_agree(self, page):
        page.patch("/api/v1/me/", {"settings": {"theme": "light"}}, content_type="application/json")
        answer = page.get(PAGE)
        assert ' data-theme="light"' in answer.content.decode()
        assert answer.context["forms"]["looks"]["theme"].initial == "light"

    def test_another_theme_is_refused(self, page, alice):
        assert page.post(PAGE, {"section": "looks", "theme": "pink"}).status_code == 400
        alice.refresh_from_db()
        assert alice.preferences == {}


class TestThinking:
    def test_effort_observer_and_quiet_time_are_saved_as_the_code_reads_them(self, page, alice):
        page.post(PAGE, THINKING)
        alice.refresh_from_db()
        assert alice.preferences == {"effort": "high", "observer": False, "quiet_minutes": 120}

    def test_what_another_section_stored_stays(self, page, alice):
        alice.preferences = {"theme": "dark", "left_by_another": 1}
        alice.save()
        page.post(PAGE, THINKING)
        alice.refresh_from_db()
        assert alice.preferences["theme"] == "dark"
        assert alice.preferences["left_by_another"] == 1

    def test_a_quiet_time_set_over_the_api_can_be_kept(self, page, alice):
        alice.preferences = {"quiet_minutes": 75}
        alice.save()
        assert "75 minutes" in page.get(PAGE).content.decode()
        page.post(PAGE, {**THINKING, "quiet_minutes": "75"})
        alice.refresh_from_db()
        assert alice.preferences["quiet_minutes"] == 75

    def test_without_leave_of_the_server_no_model_can_be_chosen(self, page, alice):
        assert "model_reply" not in page.get(PAGE).content.decode()
        page.post(PAGE, {**THINKING, "model_reply": "claude-opus-5-5"})
        with isolation.acting_as(alice.pk):
            assert choices.of(alice.pk) is None

    def test_an_allowed_model_can_be_chosen_and_given_up(self, page, alice, settings):
        settings.MIRA_MODELS_ALLOWED = {"reply": ("claude-opus-5-5",)}
        assert "claude-opus-5-5" in page.get(PAGE).content.decode()
        page.post(PAGE, {**THINKING, "model_reply": "claude-opus-5-5"})
        with isolation.acting_as(alice.pk):
            assert choices.model_for(Tier.REPLY, choices.in_scope()) == "claude-opus-5-5"
            page.post(PAGE, {**THINKING, "model_reply": settings.MIRA_MODEL})
            assert choices.of(alice.pk).chosen == {}

    def test_a_model_that_is_not_on_the_list_is_refused(self, page, settings):
        settings.MIRA_MODELS_ALLOWED = {"reply": ("claude-opus-5-5",)}
        answer = page.post(PAGE, {**THINKING, "model_reply": "claude-mythos-5"})
        assert answer.status_code == 400
        assert list(answer.context["forms"]["thinking"].errors) == ["model_reply"]


class TestKey:
    def test_it_is_kept_encrypted_and_never_shown_again(self, page, alice):
        answer = page.post(PAGE, {"section": "key", "key": f" {KEY} "})
        assert answer["Location"] == "/settings/#key"
        text = page.get(PAGE).content.decode()
        assert "A1b2" in text
        assert KEY[:-4] not in text
        assert key_of(alice) == KEY

    def test_another_takes_its_place(self, page, alice):
        page.post(PAGE, {"section": "key", "key": KEY})
        page.post(PAGE, {"section": "key", "key": KEY.replace("A1b2", "Z9z9")})
        assert key_of(alice).endswith("Z9z9")
        with isolation.acting_as(alice.pk):
            assert ProviderKey.objects.for_user(alice).count() == 1

    @pytest.mark.parametrize("bad", ["", "short", "with a space in it", "ключ-из-букв-кириллицы"])
    def test_what_cannot_be_a_key_is_refused_and_not_shown_back(self, page, alice, bad):
        answer = page.post(PAGE, {"section": "key", "key": bad})
        assert answer.status_code == 400
        assert list(answer.context["forms"]["key"].errors) == ["key"]
        assert not bad or bad not in answer.content.decode()
        assert key_of(alice) == ""

    def test_a_good_one_is_said_to_work(self, page, alice, fake_anthropic: FakeAnthropic):
        page.post(PAGE, {"section": "key", "key": KEY})
        answer = page.post("/settings/key/test/")
        assert said(answer).endswith("Your key works: fake-fast has answered.")
        assert fake_anthropic.requests[-1].headers["x-api-key"] == KEY
        with isolation.acting_as(alice.pk):
            assert ModelCall.objects.for_user(alice).get().job == "key_test"

    @pytest.mark.parametrize(
        ("status", "words"),
        [
            (401, "does not accept this key"),
            (402, "no credit left"),
            (404, "does not know the model"),
            (429, "asks to slow down"),
            (500, "has a fault"),
        ],
    )
    def test_what_is_wrong_is_said_in_words(
        self, page, fake_anthropic: FakeAnthropic, status, words
    ):
        fake_anthropic.on("fast").fails(status, times=None)
        page.post(PAGE, {"section": "key", "key": KEY})
        answer = page.post("/settings/key/test/")
        assert words in said(answer)
        assert KEY not in said(answer)

    def test_deleted_it_is_gone(self, page, alice):
        page.post(PAGE, {"section": "key", "key": KEY})
        assert "deleted" in said(page.post("/settings/key/delete/"))
        assert key_of(alice) == ""
        assert page.post("/settings/key/test/").status_code == 404

    def test_nobody_else_sees_tests_or_deletes_it(self, page, bob, alice):
        page.post(PAGE, {"section": "key", "key": KEY})
        page.force_login(bob)
        assert "A1b2" not in page.get(PAGE).content.decode()
        assert page.post("/settings/key/test/").status_code == 404
        page.post("/settings/key/delete/")
        assert key_of(alice) == KEY


class TestTokens:
    def test_a_token_is_made_with_a_name_and_shown_once(self, page, alice):
        answer = page.post(PAGE, {"section": "tokens", "name": "Backup script"})
        assert answer.status_code == 201
        [token] = re.findall(r"mira_\w{30,}", answer.content.decode())
        assert selectors.user_of_token(token) == alice
        services.update_profile(user=alice, name="Ali")
        shown = page.get(PAGE)
        assert "Backup script" in shown.content.decode()
        assert token not in shown.content.decode()
        assert not shown.context["forms"]["tokens"]["name"].value()

    def test_one_is_revoked_and_the_other_stays(self, page, alice):
        with isolation.acting_as(alice.pk):
            gone = services.issue_token(user=alice, name="Old").token
            kept = services.issue_token(user=alice, name="New").token
            start = next(row.start for row in selectors.tokens(alice) if row.name == "Old")
        answer = page.post(reverse("token_revoke", args=[start]))
        assert answer.status_code == 302
        assert selectors.user_of_token(gone) is None
        assert selectors.user_of_token(kept) == alice
        with isolation.acting_as(alice.pk):
            assert [row.name for row in TokenName.objects.for_user(alice)] == ["New"]

    def test_nobody_else_revokes_it(self, page, alice, bob):
        services.issue_token(user=bob)
        start = AuthToken.objects.get(user=bob).token_key
        assert page.post(reverse("token_revoke", args=[start])).status_code == 404
        assert AuthToken.objects.filter(user=bob).exists()

    def test_a_changed_password_ends_all_of_them(self, page, alice, bob):
        services.issue_token(user=alice)
        services.issue_token(user=bob)
        answer = page.post(
            reverse("account_change_password"),
            {
                "oldpassword": "alice-password-1",
                "password1": "another-lantern-22",
                "password2": "another-lantern-22",
            },
        )
        assert answer.status_code == 302
        assert list(AuthToken.objects.values_list("user", flat=True)) == [bob.pk]

    def test_so_does_one_that_was_changed_on_the_command_line(self, alice, bob, monkeypatch):
        services.issue_token(user=alice)
        services.issue_token(user=bob)
        monkeypatch.setattr("getpass.getpass", lambda prompt: "another-lantern-22")
        said = call_command("changepassword", "alice", stdout=StringIO())
        assert "1 ended" in said
        assert list(AuthToken.objects.values_list("user", flat=True)) == [bob.pk]
        alice.refresh_from_db()
        assert alice.check_password("another-lantern-22")

    def test_the_api_names_a_token_too(self, client, alice):
        asked = {"username": "alice", "password": "alice-password-1", "name": "Phone"}
        answer = client.post("/api/v1/auth/token/", asked, content_type="application/json")
        assert answer.status_code == 200
        with isolation.acting_as(alice.pk):
            assert [row.name for row in selectors.tokens(alice)] == ["Phone"]


class TestDevices:
    def test_others_are_signed_out_and_this_one_stays(self, page, alice):
        other = Client()
        other.force_login(alice)
        page.post("/settings/devices/")
        assert other.get(PAGE).status_code == 302
        assert page.get(PAGE).status_code == 200

    def test_sessions_of_others_stay(self, page, bob):
        other = Client()
        other.force_login(bob)
        page.post("/settings/devices/")
        assert other.get(PAGE).status_code == 200


def test_an_unknown_section_is_not_there(page):
    assert page.post(PAGE, {"section": "pink"}).status_code == 404


def test_the_cap_is_part_of_me(page, alice):
    answer = page.patch(
        "/api/v1/me/", {"settings": {"monthly_cap": 12.5}}, content_type="application/json"
    )
    assert answer.json()["settings"]["monthly_cap"] == "12.50"
    with isolation.acting_as(alice.pk):
        assert budget.of(alice.pk, zone=zones.UTC, at=alice.date_joined).cap == 12.5


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"effort": "heroic"}, "effort"),
        ({"observer": "perhaps"}, "observer"),
        ({"quiet_minutes": 29}, "quiet_minutes"),
        ({"quiet_minutes": 481}, "quiet_minutes"),
        ({"quiet_minutes": "an hour"}, "quiet_minutes"),
        ({"monthly_cap": 0}, "monthly_cap"),
        ({"monthly_cap": "much"}, "monthly_cap"),
        ({"models": {"reply": "claude-opus-5-5"}}, "models"),
        ({"models": {"poet": "x"}}, "models"),
        ({"fixed_zone": None}, "fixed_zone"),
        ({"language": "klingon"}, "language"),
    ],
)
def test_a_bad_setting_is_400_names_the_field_and_changes_nothing(page, alice, change, field):
    body = {"settings": {"theme": "dark", **change}}
    answer = page.patch("/api/v1/me/", body, content_type="application/json")
    assert answer.status_code == 400
    assert list(answer.json()["errors"]["settings"]) == [field]
    alice.refresh_from_db()
    assert alice.preferences == {}
