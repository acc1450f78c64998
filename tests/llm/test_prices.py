"""What calls cost: per model, by kind of token, and what happens to names nobody knows."""

from decimal import Decimal

import pytest
from django.test import override_settings

from mira_site import isolation
from mira_site.accounts.models import User
from mira_site.llm import client, prices
from mira_site.llm.models import ModelCall
from mira_site.llm.types import Usage
from tests.fake_anthropic import FakeAnthropic
from tests.llm.test_usage import QUESTION

MILLION = Usage(
    input_tokens=1_000_000,
    output_tokens=1_000_000,
    cache_read_tokens=1_000_000,
    cache_write_tokens=1_000_000,
)
SHORT = Usage(input_tokens=10_000, output_tokens=1_000)
OWN, PROVIDER = "http://127.0.0.1:11434", ""


@pytest.mark.parametrize(
    ("model", "dollars"),
    [
        ("claude-sonnet-5-5", "14.60"),
        ("claude-sonnet-5-5-20260928", "14.60"),
        ("claude-sonnet-5", "14.70"),
        ("claude-opus-5-5", "29.20"),
        ("claude-opus-4-8", "36.75"),
        ("anthropic/claude-sonnet-4.6", "22.05"),
    ],
)
def test_a_known_model_costs_what_the_provider_asks_wherever_it_runs(model: str, dollars: str):
    for address in (OWN, PROVIDER):
        with override_settings(ANTHROPIC_BASE_URL=address):
            assert prices.cost(model, MILLION) == Decimal(dollars)


def test_a_long_prompt_makes_the_whole_call_dearer_where_the_provider_says_so():
    short = Usage(input_tokens=60_000, cache_read_tokens=40_000, output_tokens=1_000)
    longer = Usage(input_tokens=60_010, cache_read_tokens=40_000, output_tokens=1_000)
    assert prices.cost("claude-haiku-5-5", short) == Decimal("0.0069")
    assert prices.cost("claude-haiku-5-5", longer) == Decimal("0.034505")


def test_an_unknown_model_is_free_on_ones_own_server_and_dear_at_the_provider():
    with override_settings(ANTHROPIC_BASE_URL=OWN):
        assert prices.cost("llama4:8b", SHORT) == 0
    with override_settings(ANTHROPIC_BASE_URL=PROVIDER):
        assert prices.cost("claude-something-9", SHORT) == prices.DEAREST.of(SHORT) > 0


def test_a_call_is_recorded_with_what_it_cost(alice: User, fake_anthropic: FakeAnthropic, settings):
    settings.MIRA_MODEL = "claude-sonnet-5-5"
    with isolation.acting_as(alice.pk):
        finished = client.complete(QUESTION)
        call = ModelCall.objects.for_user(alice).get()
    assert call.cost == prices.cost("claude-sonnet-5-5", finished.usage) > 0
