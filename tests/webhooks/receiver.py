"""A real HTTP server on this machine that is told of events."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Heard:
    """One request: its path, headers and raw body."""

    path: str
    headers: Message
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.body)
        return told


class Receiver:
    """Answers `status` to every POST, after `drip_s` of headers that come byte by byte."""

    def __init__(self) -> None:
        self.status = 204
        self.location = ""
        self.drip_s = 0.0
        self.heard: list[Heard] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.heard.append(Heard(self.path, self.headers, body))
                if receiver.drip_s:
                    self._drip(receiver.drip_s)
                    return
                self.send_response(receiver.status)
                if receiver.location:
                    self.send_header("Location", receiver.location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def _drip(self, seconds: float) -> None:
                until = time.monotonic() + seconds
                self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while time.monotonic() < until:
                    try:
                        self.wfile.write(b"a")
                        self.wfile.flush()
                    except OSError:
                        return
                    time.sleep(0.05)

            def log_message(self, *args: object) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/mira"

    def __enter__(self) -> Receiver:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
