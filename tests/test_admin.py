"""Staff pages of every app: they open, and none lists what a person wrote."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.db import models

from mira_site.admin import CuratedAdmin
from mira_site.owned import Owned

pytestmark = pytest.mark.django_db

OWNED = [model for model in admin.site._registry if issubclass(model, Owned)]


def ids(model: type[models.Model]) -> str:
    return model._meta.label


@pytest.mark.parametrize("model", list(admin.site._registry), ids=ids)
def test_the_list_opens_and_can_be_searched(client, staff, model):
    client.force_login(staff)
    address = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    assert client.get(address).status_code == 200
    assert client.get(address, {"q": "alice"}).status_code == 200


@pytest.mark.parametrize("model", OWNED, ids=ids)
def test_what_a_person_may_have_written_is_private(model):
    curated = admin.site._registry[model]
    assert isinstance(curated, CuratedAdmin)
    texts = {
        field.name
        for field in model._meta.concrete_fields
        if isinstance(field, (models.TextField, models.JSONField))
        and not isinstance(field, models.GeneratedField)
    }
    on_its_page = texts if curated.fields is None else texts & set(curated.fields)
    assert on_its_page <= set(curated.private_fields)


@pytest.mark.parametrize("model", OWNED, ids=ids)
def test_curated_rows_pass_the_admins_own_checks(model):
    assert admin.site._registry[model].check() == []
