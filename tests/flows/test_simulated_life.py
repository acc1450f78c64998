"""A month of talk, lived in fast motion: what memory must have done at its end."""

from __future__ import annotations

import sys

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command

from mira_site.accounts.models import User
from mira_site.isolation import all_users
from mira_site.owned import Owned
from mira_site.simulation import claims, life, story


def owned() -> list[type[Owned]]:
    return [model for model in apps.get_models() if issubclass(model, Owned)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(300)
def test_a_month_of_talk_leaves_memory_as_it_should_be(embedder):
    with life.lived(story.tell(facts=150)) as lived:
        judged = claims.judged(lived)
    assert [one for one in judged if not one.holds] == []
    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_life_that_breaks_off_leaves_nothing_behind(embedder):
    def break_off(line: str) -> None:
        raise RuntimeError(line)

    with pytest.raises(RuntimeError, match="2041-03-04"), life.lived(story.tell(), tell=break_off):
        pytest.fail("It did not break off.")
    with all_users("check of what is left"):
        left = [model._meta.label for model in owned() if model.objects.exists()]
    assert left == []


def test_the_same_seed_tells_the_same_story_and_another_seed_another():
    assert story.tell(seed=3) == story.tell(seed=3)
    assert story.tell(seed=3) != story.tell(seed=4)


def test_the_story_is_the_one_that_is_to_be_told():
    told = story.tell()
    assert (len(told.days), len(told.facts)) == (30, 300)
    assert len([one for one in told.facts if one.replaces]) == 20
    assert len([one for one in told.facts if one.happens_on]) == 10
    left, back = told.days[told.leaves_after].on, told.days[told.leaves_after + 1].on
    assert (back - left).days == 15
    assert sum(len(day.said) for day in told.days) == 360


def test_no_simulation_among_people_unless_forced(alice):
    with pytest.raises(CommandError, match="--force"):
        call_command("simulate_life")


@pytest.mark.django_db
@pytest.mark.parametrize("arguments", [("--days", "7"), ("--facts", "30")])
def test_a_life_too_short_to_show_anything_is_refused(arguments):
    with pytest.raises(CommandError, match="Give"):
        call_command("simulate_life", *arguments)


def test_without_the_test_requirements_the_command_says_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, "mira_site.simulation.life")
    monkeypatch.setitem(sys.modules, "time_machine", None)
    with pytest.raises(CommandError, match=r"time_machine is missing.*requirements-dev"):
        call_command("simulate_life")
