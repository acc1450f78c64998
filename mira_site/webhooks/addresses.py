"""Which addresses MIRA calls on behalf of a person: public ones, over HTTPS.

A URL is judged by its shape when it is entered, and by every address its name stands for each time
it is called. What WEBHOOK_PRIVATE_HOSTS names is the operator's word: it may be private and plain
HTTP, but never link-local, where clouds keep their credentials.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from contextlib import suppress

import httpx2
from django.conf import settings

from mira_site.errors import BadRequest, MiraError
from mira_site.webhooks.constants import (
    PORT_UNPRIVILEGED,
    PORTS_REFUSED,
    URL_MAX_CHARS,
    WEB_PORTS,
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
PUBLIC_IPV6 = ipaddress.IPv6Network("2000::/3")
# What `is_global` of some Python versions lets through, and a cloud's metadata service that answers
# at an address which looks public.
NOT_PUBLIC = tuple(
    ipaddress.IPv4Network(network)
    for network in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32")
)
HOST = re.compile(r"[a-z0-9._:-]{1,253}")
PORT_LAST = 65_535
PRIVATE = "This address is private. Webhooks go to public addresses only."


class AddressRefused(MiraError):
    """The name stands for an address that is not called."""

    code = "address_refused"


def checked_url(text: str) -> str:
    """The URL in the form in which it is called. Raises BadRequest that says what is wrong."""
    try:
        url = httpx2.URL(text.strip())
    except httpx2.InvalidURL as error:
        raise _bad("This is no URL.") from error
    if objection := _objection(url):
        raise _bad(objection)
    return str(url.copy_with(fragment=None))


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, all of which may be called. Raises AddressRefused, OSError.

    One private address among public ones refuses the host: which of them a later look-up would
    bring is not known.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not all(_may_be_called(address, host) for address in addresses):
        raise AddressRefused(PRIVATE)
    return addresses


def is_public(address: Address) -> bool:
    """Whether anybody on the internet could call it. IPv4 inside IPv6 is judged as IPv4."""
    inner = _ipv4_inside(address)
    if inner is not None:
        return is_public(inner)
    if address.version == 6 and address not in PUBLIC_IPV6:
        return False
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not any(address in network for network in NOT_PUBLIC)
    )


def _objection(url: httpx2.URL) -> str:
    """What is wrong with the URL; '' if nothing is."""
    if len(str(url)) > URL_MAX_CHARS:
        return f"A URL has at most {URL_MAX_CHARS:,} characters."
    if url.scheme not in ("https", "http") or not HOST.fullmatch(url.raw_host.decode("ascii")):
        return "Give a URL that starts with https://."
    if url.userinfo:
        return "Leave out the name and password. Every delivery is signed instead."
    is_named = _host(url.host) in _private_hosts()
    if url.scheme == "http" and not (is_named or settings.DEBUG):
        return "Use https://."
    if not _is_web_port(url.port):
        return "This port is not called. Use 443, or one above 1023."
    if not is_named and not _looks_public(url.host):
        return PRIVATE
    return ""


def _bad(says: str) -> BadRequest:
    return BadRequest("Some fields need another value; see errors.", fields={"url": says})


def _is_web_port(port: int | None) -> bool:
    if port is None or port in WEB_PORTS:
        return True
    return PORT_UNPRIVILEGED <= port <= PORT_LAST and port not in PORTS_REFUSED


def _looks_public(host: str) -> bool:
    """As far as it can be told without a look-up."""
    with suppress(ValueError):
        return is_public(ipaddress.ip_address(_host(host)))
    return not (host == "localhost" or host.endswith((".localhost", ".local", ".internal")))


def _may_be_called(address: str, host: str) -> bool:
    given = ipaddress.ip_address(address.partition("%")[0])
    if _host(host) not in _private_hosts():
        return is_public(given)
    given = _ipv4_inside(given) or given
    return not (given.is_link_local or given.is_multicast or given.is_unspecified)


def _ipv4_inside(address: Address) -> ipaddress.IPv4Address | None:
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in NAT64:
        return ipaddress.IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]


def _host(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def _private_hosts() -> set[str]:
    return {_host(host) for host in settings.WEBHOOK_PRIVATE_HOSTS}
