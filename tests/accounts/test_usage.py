"""What models cost a person: by month, job and model, on the page, over the API and as a table."""

from __future__ import annotations

import csv
import datetime as dt
from decimal import Decimal

import pytest
import time_machine

from conversations import compaction, peanut_gallery, subcortical, summarising, tool_results
from memory import curation, entity_merging, extraction
from mira_site import isolation
from mira_site.accounts import usage_views
from mira_site.accounts.models import User
from mira_site.llm import budget
from mira_site.llm.models import ModelCall

pytestmark = pytest.mark.django_db

PAGE, API, TABLE = "/settings/usage/", "/api/v1/usage/", "/settings/usage/calls.csv"
NOW = dt.datetime(2026, 11, 15, 12, tzinfo=dt.UTC)
# In Vienna: the last second of October, the first and the last of November.
OCTOBER, FIRST, LAST = (
    dt.datetime(2026, 10, 31, 22, 59, 59, tzinfo=dt.UTC),
    dt.datetime(2026, 10, 31, 23, 0, 0, tzinfo=dt.UTC),
    dt.datetime(2026, 11, 30, 22, 59, 59, tzinfo=dt.UTC),
)


def called(user: User, at: dt.datetime, cost: str, **fields: object) -> None:
    values = {
        "job": "reply",
        "tier": "reply",
        "model": "claude-sonnet-5-5",
        "outcome": "ok",
        "input_tokens": 100,
        "cache_read_tokens": 800,
        "cache_write_tokens": 100,
        "output_tokens": 50,
    }
    with isolation.acting_as(user.pk):
        call = ModelCall.objects.create(user=user, cost=Decimal(cost), **(values | fields))
        ModelCall.objects.for_user(user).filter(pk=call.pk).update(created_at=at)
        budget.spent_more()


@pytest.fixture(autouse=True)
def november():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def page(client, alice, bob):
    """Alice, in Vienna, with four calls; Bob has one of his own."""
    User.objects.filter(pk=alice.pk).update(timezone="Europe/Vienna")
    client.force_login(alice)
    called(alice, OCTOBER, "1.00")
    called(alice, FIRST, "0.10")
    called(alice, LAST, "0.20")
    called(alice, NOW, "0.03", job="summary", model="claude-haiku-5-5")
    called(bob, NOW, "70")
    return client


def test_months_end_at_midnight_of_the_persons_zone(page):
    found = page.get(API).json()
    assert [(row["month"], row["calls"], row["cost"]) for row in found["months"]] == [
        ("2026-11", 3, "0.330000"),
        ("2026-10", 1, "1.000000"),
    ]


def test_a_month_is_told_by_job_and_by_model(page):
    found = page.get(API).json()
    assert found["month"] == "2026-11"
    assert [(row["name"], row["cost"]) for row in found["jobs"]] == [
        ("reply", "0.300000"),
        ("summary", "0.030000"),
    ]
    assert [row["name"] for row in found["models"]] == ["claude-sonnet-5-5", "claude-haiku-5-5"]
    assert found["jobs"][0]["cache_share"] == 0.8


def test_an_earlier_month_can_be_asked_for(page):
    found = page.get(f"{API}?month=2026-10").json()
    assert [(row["name"], row["calls"]) for row in found["jobs"]] == [("reply", 1)]


@pytest.mark.parametrize("month", ["2026-13", "november", "0001-01", "9999-12", "2026-11-01"])
def test_what_is_no_month_is_refused(page, month):
    answer = page.get(f"{API}?month={month}")
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == ["month"]
    assert page.get(f"{PAGE}?month={month}").status_code == 404
    assert page.get(f"{TABLE}?month={month}").status_code == 404


def test_the_budget_is_told_with_it(page, alice):
    with isolation.acting_as(alice.pk):
        budget.set_cap(user_id=alice.pk, dollars=Decimal("0.40"))
    told = page.get(API).json()["budget"]
    assert told == {
        "cap": "0.40",
        "spent": "0.330000",
        "is_near": True,
        "is_reached": False,
        "resets_at": "2026-11-30T23:00:00Z",
    }


def test_the_page_says_the_same_in_words(page):
    text = page.get(PAGE).content.decode()
    for part in ("November 2026", "$0.33", "Answers", "Summaries", "claude-haiku-5-5", "80%"):
        assert part in text
    assert "$70" not in text


def test_every_job_that_asks_a_model_has_words_of_its_own():
    jobs = (
        peanut_gallery.OBSERVATION,
        tool_results.JOB,
        compaction.COMPACTION,
        subcortical.SUBCORTICAL,
        summarising.SUMMARY,
        entity_merging.ENTITY_MERGE,
        extraction.EXTRACTION,
    )
    for name in ("reply", *(job.name for job in jobs), curation.INTEGRATION, curation.FLOOR):
        assert name in usage_views.JOB_WORDS


def test_a_month_without_calls_is_said_to_be_empty(page):
    assert "No model was asked in this month." in page.get(f"{PAGE}?month=2025-01").content.decode()


def test_the_chart_has_a_bar_for_each_day_that_cost_something(page):
    bars = page.get(PAGE).context["bars"]
    assert [bar["day"].day for bar in bars] == [1, 15, 30]
    assert max(bar["height"] for bar in bars) == 72


def test_every_call_comes_as_a_table(page):
    answer = page.get(TABLE)
    assert "mira-usage-2026-11.csv" in answer["Content-Disposition"]
    rows = list(csv.DictReader(answer.content.decode().splitlines()))
    assert [row["dollars"] for row in rows] == ["0.100000", "0.030000", "0.200000"]
    assert rows[0]["at"] == "2026-11-01T00:00:00+01:00"


def test_a_model_named_like_a_formula_does_not_become_one(page, alice):
    called(alice, NOW, "0", model="=HYPERLINK()")
    assert ",'=HYPERLINK()," in page.get(TABLE).content.decode()


def test_a_cap_is_set_and_lifted_on_the_page(page, alice):
    page.post(PAGE, {"monthly_cap": "0.30"})
    assert "The cap is reached." in page.get(PAGE).content.decode()
    page.post(PAGE, {"monthly_cap": "0.40"})
    assert "The cap is near." in page.get(PAGE).content.decode()
    page.post(PAGE, {"monthly_cap": ""})
    assert page.get(API).json()["budget"]["cap"] is None


@pytest.mark.parametrize("cap", ["0", "-3", "lots", "1.234", "1e9"])
def test_a_bad_cap_is_refused_at_its_field(page, cap):
    answer = page.post(PAGE, {"monthly_cap": cap})
    assert answer.status_code == 400
    assert list(answer.context["form"].errors) == ["monthly_cap"]


def test_the_schema_tells_of_it(client):
    schema = client.get("/api/schema/?format=json").json()
    told = schema["paths"]["/api/v1/usage/"]["get"]
    assert [field["name"] for field in told["parameters"]] == ["month"]
    changes = schema["components"]["schemas"]["SettingsChanges"]
    assert "required" not in changes
    assert set(changes["properties"]) == {
        "theme", "effort", "observer", "quiet_minutes", "fixed_zone", "language", "monthly_cap",
        "models",
    }  # fmt: skip


def test_the_api_needs_somebody(client):
    assert client.get(API).status_code == 401
