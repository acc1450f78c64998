"""Which addresses are called: by shape, and by what a name stands for."""

from __future__ import annotations

import ipaddress
import socket

import pytest
from pytest_django import Settings

from mira_site.errors import BadRequest
from mira_site.webhooks import addresses, calling

PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "0.0.0.0",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fec0::1",
    "fd00:ec2::254",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::127.0.0.1",
    "2002:7f00:1::",
    "64:ff9b::a9fe:a9fe",
    "2001:db8::1",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_not_public_in_any_notation(address):
    assert not addresses.is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822"])
def test_a_public_address_is_public(address):
    assert addresses.is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/hook",
        "ftp://example.org/",
        "https://",
        "example.org",
        "https://user:word@example.org/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://localhost/",
        "https://router.local/",
        "https://metadata.google.internal/",
        "https://example.org:22/",
        "https://example.org:6379/",
        "https://example.org/" + "a" * 2_000,
        "https://example.org:99999/",
        "https://exa mple.org/",
    ],
)
def test_a_url_that_is_not_called_is_refused_when_it_is_entered(url):
    with pytest.raises(BadRequest) as refused:
        addresses.checked_url(url)
    assert set(refused.value.fields) == {"url"}


def test_a_public_url_is_kept_without_its_fragment():
    checked = addresses.checked_url(" https://Example.org:8443/hook?key=1#there ")
    assert checked == "https://example.org:8443/hook?key=1"


def test_plain_http_needs_the_operators_word_or_debug(settings: Settings):
    settings.WEBHOOK_PRIVATE_HOSTS = ["hooks.lan"]
    assert addresses.checked_url("http://hooks.lan:8000/") == "http://hooks.lan:8000/"
    settings.DEBUG = True
    assert addresses.checked_url("http://example.org/") == "http://example.org/"


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433", "0x7f.1", "127.0.0.1"])
def test_a_name_that_stands_for_this_machine_is_refused_when_it_is_called(host):
    answer = calling.post(f"http://{host}:9/", body=b"{}", headers=[])
    assert (answer.status, answer.error_code) == (None, "address_refused")


def test_one_private_address_among_public_ones_refuses_the_host(monkeypatch):
    def look_up(host, port, **_):
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in ("93.184.216.34", "10.0.0.1")
        ]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(addresses.AddressRefused):
        addresses.resolve("two-faced.example", 443)


def test_link_local_is_refused_even_on_the_operators_word(settings: Settings):
    settings.WEBHOOK_PRIVATE_HOSTS = ["169.254.169.254", "127.0.0.1"]
    with pytest.raises(addresses.AddressRefused):
        addresses.resolve("169.254.169.254", 80)
    assert addresses.resolve("127.0.0.1", 80) == ["127.0.0.1"]


def test_the_connection_goes_to_the_address_that_was_checked(receiver, settings, monkeypatch):
    """A name that is looked up a second time would by now stand for something else."""
    settings.WEBHOOK_PRIVATE_HOSTS = ["rebinding.example"]
    asked = []
    real = socket.getaddrinfo

    def look_up(host, port, *rest, **named):
        if host != "rebinding.example":
            return real(host, port, *rest, **named)
        asked.append(host)
        address = "127.0.0.1" if len(asked) == 1 else "169.254.169.254"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    answer = calling.post(
        f"http://rebinding.example:{receiver.port}/", body=b"{}", headers=[("X-One", "1")]
    )
    assert answer.status == 204
    assert asked == ["rebinding.example"]
    assert receiver.heard[0].headers["Host"] == f"rebinding.example:{receiver.port}"


def test_a_redirect_is_not_followed(receiver):
    receiver.status, receiver.location = 302, receiver.url + "/elsewhere"
    answer = calling.post(receiver.url, body=b"{}", headers=[])
    assert (answer.status, answer.succeeded) == (302, False)
    assert [heard.path for heard in receiver.heard] == ["/mira"]


def test_an_answer_that_drips_does_not_hold_a_worker(receiver, monkeypatch):
    monkeypatch.setattr(calling, "ATTEMPT_TIMEOUT_S", 0.5)
    receiver.drip_s = 5.0
    assert calling.post(receiver.url, body=b"{}", headers=[]).error_code == "timeout"


def test_who_does_not_listen_and_who_does_not_exist(receiver, settings):
    settings.WEBHOOK_PRIVATE_HOSTS = ["127.0.0.1"]
    assert calling.post("http://127.0.0.1:1/", body=b"", headers=[]).error_code == "connection"
    nobody = calling.post("https://nobody.invalid/", body=b"", headers=[])
    assert nobody.error_code == "name_not_found"
