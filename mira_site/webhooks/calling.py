"""One HTTP request to an endpoint: to the address that was checked, within its time, no further.

Redirects are not followed, proxies of the environment are not used, no body is read.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpcore2
import httpx2

from mira_site.webhooks import addresses
from mira_site.webhooks.addresses import AddressRefused
from mira_site.webhooks.constants import ATTEMPT_TIMEOUT_S, CONNECT_TIMEOUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The status that came back, or why none did."""

    status: int | None = None
    error_code: str = ""

    @property
    def succeeded(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def post(url: str, *, body: bytes, headers: Sequence[tuple[str, str]]) -> Answer:
    """POST the body. Whatever the other side does, it ends within the time of an attempt."""
    target = httpx2.URL(url)
    wire = httpcore2.URL(
        scheme=target.raw_scheme, host=target.raw_host, port=target.port, target=target.raw_path
    )
    try:
        with (
            httpcore2.ConnectionPool(
                ssl_context=_tls(), network_backend=_Pinned(time.monotonic() + ATTEMPT_TIMEOUT_S)
            ) as pool,
            pool.stream("POST", wire, headers=[*headers], content=body) as response,
        ):
            return Answer(status=response.status)
    except AddressRefused as error:
        return Answer(error_code=error.code)
    except httpcore2.TimeoutException:
        return Answer(error_code="timeout")
    except (httpcore2.NetworkError, httpcore2.ProtocolError):
        return Answer(error_code="connection")
    except (OSError, UnicodeError):  # the name could not be looked up
        return Answer(error_code="name_not_found")


@cache
def _tls() -> ssl.SSLContext:
    return httpcore2.default_ssl_context()


class _Pinned(httpcore2.NetworkBackend):
    """Looks a name up once, checks what it stands for, and connects to exactly that."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._sockets = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        failed: httpcore2.NetworkError | httpcore2.TimeoutException | None = None
        for address in addresses.resolve(host, port):
            limit_s = min(CONNECT_TIMEOUT_S, _left(self._deadline, httpcore2.ConnectTimeout))
            try:
                stream = self._sockets.connect_tcp(address, port, limit_s, local_address)
                return _Timed(stream, self._deadline)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore2.ConnectError("no address")


class _Timed(httpcore2.NetworkStream):
    """A stream with one deadline for all it does: a limit for each read can be dripped around."""

    def __init__(self, stream: httpcore2.NetworkStream, deadline: float) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(self._deadline, httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(self._deadline, httpcore2.WriteTimeout))

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        limit_s = _left(self._deadline, httpcore2.ConnectTimeout)
        stream = self._stream.start_tls(ssl_context, server_hostname, limit_s)
        return _Timed(stream, self._deadline)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _left(deadline: float, over: type[httpcore2.TimeoutException]) -> float:
    """Seconds until the deadline. Raises `over` once it has passed."""
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise over("the attempt's time is over")
    return left_s
