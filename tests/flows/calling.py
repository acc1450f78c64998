"""A program that uses MIRA over HTTP, with a token."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TIMEOUT_S = 90


@dataclass(frozen=True)
class Answer:
    status: int
    json: Any
    content_type: str


@dataclass(frozen=True)
class Caller:
    address: str
    token: str = ""

    def get(self, path: str) -> Answer:
        return self._ask("GET", path)

    def post(self, path: str, **body: Any) -> Answer:
        return self._ask("POST", path, body)

    def say(self, message: str, **more: Any) -> dict[str, Any]:
        """The answer to a message; anything but 200 is an error of the test."""
        answered = self.post("chat/", message=message, **more)
        assert answered.status == 200, answered
        result: dict[str, Any] = answered.json
        return result

    def stream(self, path: str, **body: Any) -> Iterator[dict[str, Any]]:
        """Server-sent events as they come: {"event", "id", "data"}."""
        request = self._request("POST", path, body, accept="text/event-stream")
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            assert response.headers["Content-Type"].startswith("text/event-stream")
            event: dict[str, Any] = {}
            for line in response:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    event[name] = json.loads(value) if name == "data" else value
                elif event:
                    yield event
                    event = {}

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        request = self._request(method, path, body)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
                return _answer(response.status, response)
        except urllib.error.HTTPError as error:
            with error:
                return _answer(error.code, error)

    def _request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None,
        accept: str = "application/json",
    ) -> urllib.request.Request:
        headers = {"Accept": accept, "Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Token {self.token}"
        return urllib.request.Request(
            f"{self.address}/api/v1/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers=headers,
        )


def _answer(status: int, response: Any) -> Answer:
    content_type = response.headers.get("Content-Type", "")
    text = response.read().decode()
    return Answer(status, json.loads(text) if "json" in content_type else text, content_type)
