"""What a call costs, in dollars.

Prices are those of platform.claude.com, "Pricing", October 2026; a prompt is cached for five
minutes, so a write costs 1.25 times the input. A model of another name is free where somebody named
the server (ANTHROPIC_BASE_URL: mostly one's own machine), and as dear as the dearest known where it
is the provider's own: a bill may be smaller than what is shown, never larger.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from django.conf import settings

from mira_site.llm.types import Usage

PER = Decimal(1_000_000)  # tokens that a price is for
SMALLEST = Decimal("0.000001")  # dollars that are still counted


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens. Beyond `long_from` tokens of prompt all cost `long` instead."""

    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write: Decimal
    long_from: int = 0
    long: Price | None = None

    def of(self, usage: Usage) -> Decimal:
        """The cost of one call, for whose prompt `long_from` counts."""
        if self.long is not None and usage.prompt_tokens > self.long_from:
            return self.long.of(usage)
        total = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * self.cache_read
            + usage.cache_write_tokens * self.cache_write
        )
        return (total / PER).quantize(SMALLEST)


def _price(input: str, output: str, read: str, write: str) -> Price:
    return Price(Decimal(input), Decimal(output), Decimal(read), Decimal(write))


FREE = _price("0", "0", "0", "0")
# By the start of a name; the longest that fits counts.
PRICES = {
    "claude-fable-5-2": _price("8", "40", "0.20", "10"),
    "claude-mythos-5-2": _price("8", "40", "0.20", "10"),
    "claude-fable-5-1": _price("10", "50", "0.25", "12.50"),
    "claude-mythos-5-1": _price("10", "50", "0.25", "12.50"),
    "claude-fable-5": _price("10", "50", "1", "12.50"),
    "claude-mythos-5": _price("10", "50", "1", "12.50"),
    "claude-opus-5-5": _price("4", "20", "0.20", "5"),
    "claude-opus-5": _price("5", "25", "0.50", "6.25"),
    "claude-opus-4": _price("5", "25", "0.50", "6.25"),
    **dict.fromkeys(
        ("claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2025"),
        _price("15", "75", "1.50", "18.75"),
    ),
    "claude-sonnet-5-5": _price("2", "10", "0.10", "2.50"),
    "claude-sonnet-5": _price("2", "10", "0.20", "2.50"),
    "claude-sonnet-4": _price("3", "15", "0.30", "3.75"),
    "claude-haiku-5-5": Price(
        Decimal("0.10"),
        Decimal("0.50"),
        Decimal("0.01"),
        Decimal("0.125"),
        long_from=100_000,
        long=_price("0.50", "2.50", "0.05", "0.625"),
    ),
    "claude-haiku-4": _price("1", "5", "0.10", "1.25"),
}
DEAREST = max(PRICES.values(), key=lambda price: (price.output, price.input, price.cache_read))


def cost(model: str, usage: Usage) -> Decimal:
    """Dollars for one call, by the name that the provider gave its model."""
    return price(model, has_own_server=bool(settings.ANTHROPIC_BASE_URL)).of(usage)


@lru_cache(maxsize=64)
def price(model: str, *, has_own_server: bool) -> Price:
    """The model's price; gateways may put "anthropic/" before the name and dots into it."""
    name = model.lower().rpartition("/")[2].replace(".", "-")
    known = [start for start in PRICES if name.startswith(start)]
    if known:
        return PRICES[max(known, key=len)]
    return FREE if has_own_server else DEAREST
