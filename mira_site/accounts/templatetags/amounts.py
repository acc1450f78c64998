"""Money, tokens and shares as people read them."""

from __future__ import annotations

from decimal import Decimal

from django import template

register = template.Library()
CENT = Decimal("0.01")


@register.filter
def dollars(amount: Decimal) -> str:
    """`$1,234.50`; less than a cent is said to be that."""
    if 0 < amount < CENT:
        return "under $0.01"
    return f"${amount:,.2f}"


@register.filter
def grouped(number: int) -> str:
    return f"{number:,}"


@register.filter
def percent(share: float | Decimal) -> str:
    return f"{float(share):.0%}"
