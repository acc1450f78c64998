"""A key of one's own: for one's own calls, and for nobody else's."""

from __future__ import annotations

import pytest
from django.db import connection

from mira_site import errors, isolation
from mira_site.accounts.models import User
from mira_site.llm import choices, client, keys
from mira_site.llm.models import ProviderKey
from mira_site.llm.types import ChatMessage, ModelRequest, Tier
from tests.fake_anthropic import FakeAnthropic

pytestmark = pytest.mark.django_db

KEY = "sk-ant-alice-000000000000-A1b2"
REPLY = ModelRequest(tier=Tier.REPLY, messages=(ChatMessage(role="user", content="Hi"),))


@pytest.fixture(autouse=True)
def kept(alice: User):
    with isolation.acting_as(alice.pk):
        keys.keep(user_id=alice.pk, key=KEY)


def key_sent(fake: FakeAnthropic) -> str:
    client.complete(REPLY)
    return fake.requests[-1].headers["x-api-key"]


def test_each_call_goes_out_with_the_key_of_its_person(alice, bob, fake_anthropic, settings):
    settings.ANTHROPIC_API_KEY = "sk-of-the-server"
    with isolation.acting_as(alice.pk):
        assert key_sent(fake_anthropic) == KEY
    with isolation.acting_as(bob.pk):
        assert key_sent(fake_anthropic) == "sk-of-the-server"
    assert key_sent(fake_anthropic) == "sk-of-the-server"
    with isolation.all_users("a test of keys"):
        assert key_sent(fake_anthropic) == "sk-of-the-server"


def test_deleted_it_is_used_no_more(alice, fake_anthropic, settings):
    settings.ANTHROPIC_API_KEY = "sk-of-the-server"
    with isolation.acting_as(alice.pk):
        assert keys.drop(user_id=alice.pk)
        assert key_sent(fake_anthropic) == "sk-of-the-server"
        assert not keys.drop(user_id=alice.pk)


def test_it_is_a_model_for_its_person_where_the_server_has_none(alice, bob, settings):
    settings.ANTHROPIC_API_KEY = settings.ANTHROPIC_BASE_URL = ""
    with isolation.acting_as(alice.pk):
        assert client.is_configured()
    with isolation.acting_as(bob.pk):
        assert not client.is_configured()
    assert not client.is_configured()


def test_a_refused_one_is_not_replaced_by_the_servers_and_the_settings_page_is_named(
    alice, fake_anthropic, settings
):
    settings.ANTHROPIC_API_KEY = "sk-of-the-server"
    fake_anthropic.on("reply").fails(401, times=None)
    with isolation.acting_as(alice.pk):
        with pytest.raises(errors.LLMBadKey, match=r"your own API key.*/settings/#key"):
            client.complete(REPLY)
        assert {seen.headers["x-api-key"] for seen in fake_anthropic.requests} == {KEY}


def test_stored_it_is_unreadable_and_somebody_elses_query_finds_nothing(alice, bob):
    with isolation.acting_as(alice.pk), connection.cursor() as cursor:
        cursor.execute("SELECT secret, last_four FROM llm_provider_keys")
        secret, last_four = cursor.fetchone()
    assert KEY.encode() not in bytes(secret)
    assert last_four == "A1b2"
    with isolation.acting_as(bob.pk), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM llm_provider_keys")
        assert cursor.fetchone() == (0,)
        assert not ProviderKey.objects.for_user(alice).exists()


def test_a_choice_that_the_server_withdrew_is_its_own_model_again(alice, fake_anthropic, settings):
    settings.MIRA_MODELS_ALLOWED = {"reply": ("another-model",)}
    with isolation.acting_as(alice.pk):
        choices.choose(user_id=alice.pk, models={"reply": "another-model"})
        assert choices.model_for(Tier.REPLY, choices.in_scope()) == "another-model"
        settings.MIRA_MODELS_ALLOWED = {}
        client.complete(REPLY)
    assert fake_anthropic.requests[-1].json["model"] == settings.MIRA_MODEL


def test_what_is_not_allowed_cannot_be_chosen(alice):
    with (
        isolation.acting_as(alice.pk),
        pytest.raises(errors.BadRequest, match="cannot be chosen"),
    ):
        choices.choose(user_id=alice.pk, models={"reply": "claude-mythos-5"})
