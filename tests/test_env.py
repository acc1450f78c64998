"""Readers of the environment."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_every_setting_that_is_documented_is_read_and_the_other_way_round():
    """A setting that nobody reads misleads whoever sets it."""
    root = Path(env.__file__).parent.parent
    source = (root / "mira_site/settings.py").read_text(encoding="utf-8")
    read = set(re.findall(r'env\.\w+\(\s*"(\w+)"', source))
    table = (root / "README.md").read_text(encoding="utf-8").partition("| Setting |")[2]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", table.partition("\n## ")[0], re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"\w+", row)}
    assert documented == read - {"DEBUG"}
