"""Staff see that there is a key and what was spent; never the key."""

from __future__ import annotations

import pytest

from mira_site import isolation
from mira_site.llm import keys
from mira_site.llm.models import ProviderKey

pytestmark = pytest.mark.django_db

KEY = "sk-ant-alice-000000000000-A1b2"


def test_staff_see_that_there_is_a_key_and_nothing_of_it(client, alice, staff):
    with isolation.acting_as(alice.pk):
        keys.keep(user_id=alice.pk, key=KEY)
        row = ProviderKey.objects.for_user(alice).get()
    client.force_login(staff)
    for address in (
        "/admin/llm/providerkey/",
        f"/admin/llm/providerkey/{row.pk}/change/",
        "/admin/llm/modelsettings/",
    ):
        answer = client.get(address)
        assert answer.status_code == 200
        assert "A1b2" not in answer.content.decode()
    assert "alice" in client.get("/admin/llm/providerkey/").content.decode()
