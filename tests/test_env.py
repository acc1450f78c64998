"""Readers of the environment."""

from __future__ import annotations

import pytest

from mira_site import env
from mira_site.errors import SettingError

TIERS = ("reply", "fast", "background")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("", {}),
        ("reply=a", {"reply": ("a",)}),
        (" reply = a, b ; fast=c; ", {"reply": ("a", "b"), "fast": ("c",)}),
        ("reply=", {"reply": ()}),
    ],
)
def test_lists_stand_under_their_heads(monkeypatch, given, found):
    monkeypatch.setenv("MODELS", given)
    assert env.lists("MODELS", TIERS) == found


@pytest.mark.parametrize("given", ["a,b", "poet=a", "reply=a; b"])
def test_a_list_without_a_known_head_stops_the_start_and_names_the_setting(monkeypatch, given):
    monkeypatch.setenv("MODELS", given)
    with pytest.raises(SettingError, match="MODELS must look like reply="):
        env.lists("MODELS", TIERS)
