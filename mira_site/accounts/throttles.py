"""How often somebody may ask for a token."""

from __future__ import annotations

import hashlib
import ipaddress
from typing import Any

from django.http import HttpRequest
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle, SimpleRateThrottle

from mira_site.accounts.constants import IPV6_CUSTOMER_PREFIX


def client_address(request: HttpRequest | Request) -> str:
    """The visitor's address, of which the trusted proxies' part of X-Forwarded-For is believed.

    It is what NUM_PROXIES says, for the API and the sign-in pages alike. Empty over a Unix socket.
    """
    found = BaseThrottle().get_ident(request) or ""  # type: ignore[arg-type]
    try:
        return str(ipaddress.ip_address(found))
    except ValueError:
        return ""


def network(address: str) -> str:
    """Who an address belongs to: itself, or for IPv6 the network a customer is given."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network(f"{address}/{IPV6_CUSTOMER_PREFIX}", strict=False))


class TokenByAddress(SimpleRateThrottle):
    scope = "token"

    def get_cache_key(self, request: Request, view: Any) -> str:
        return f"throttle:token:address:{network(client_address(request))}"


class TokenByAccount(SimpleRateThrottle):
    """By the name that was typed, whether such an account exists or not."""

    scope = "token_account"

    def get_cache_key(self, request: Request, view: Any) -> str | None:
        name = request.data.get("username") if isinstance(request.data, dict) else None
        if not name:
            return None
        digest = hashlib.sha256(str(name).strip().casefold().encode()).hexdigest()
        return f"throttle:token:account:{digest}"
