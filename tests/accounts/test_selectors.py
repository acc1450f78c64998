from __future__ import annotations

import uuid

import pytest

from mira_site.accounts import selectors
from mira_site.errors import NotFound
from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


def test_an_account_is_found_by_id_name_or_address(alice):
    assert selectors.user(str(alice.pk)) == alice
    assert selectors.user_named("alice") == alice
    assert selectors.user_named("Alice@example.org") == alice


def test_an_unknown_account_is_not_found(alice):
    with pytest.raises(NotFound):
        selectors.user(uuid.uuid4())
    with pytest.raises(NotFound):
        selectors.user_named("nobody")


def test_an_address_of_two_accounts_names_neither(alice):
    UserFactory(email="alice@example.org")
    with pytest.raises(NotFound):
        selectors.user_named("alice@example.org")


def test_a_bad_token_is_nobodys(alice):
    assert selectors.user_of_token("mira_made_up") is None
    assert selectors.user_of_token("mülltoken") is None


def test_stored_preferences_that_make_no_sense_are_the_defaults(alice):
    alice.preferences = {"theme": "pink", "left_over": 1}
    assert selectors.preferences(alice).theme == "system"
