"""A real HTTP server that speaks the Messages API, by script.

    fake.on("reply").says("Hello, Alice.")
    fake.on("reply").calls_tool("search_memories", {"query": "boat"}).says("It is called Ada.")
    fake.on("fast").fails(529, times=2)            a tier: reply, fast, background
    fake.on("extraction").answers({"facts": []})   a job, by its name; wins over its tier

What was scripted first happens first; an entry without `times` stays for good, until another such
entry for the same target takes its place. Unscripted, a reply echoes and a job gets the smallest
answer its schema allows. Requests the real API would refuse are refused in the same way.

Stand-alone: python -m tests.fake_anthropic --port 9999
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import select
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests import messages_api

HANG_LIMIT_S = 120
LOOKBACK_BLOCKS = 20  # of a prompt, before a breakpoint, in which a kept prefix is looked for


Piece = tuple[str, tuple[str, ...], Mapping[str, Any]]


@dataclass(frozen=True)
class Plan:
    """One answer: blocks as (kind, pieces, extra), or a failure; `times` is None for always."""

    blocks: tuple[Piece, ...] = ()
    stop_reason: str = "end_turn"
    delay_s: float = 0.0
    status: int = 200
    message: str = ""
    retry_after: str | None = None
    cut_after: int | None = None  # pieces
    ends_cleanly: bool = False
    error_after: int | None = None  # pieces, then an error event in mid-stream
    hangs: str = ""  # "before" or "after" the first event
    times: int | None = None


@dataclass
class Seen:
    """A request as it came."""

    headers: Mapping[str, str]
    json: Mapping[str, Any]
    tier: str
    job: str | None
    path: str
    was_dropped: threading.Event = field(default_factory=threading.Event)

    @property
    def system(self) -> str:
        parts = self.json.get("system") or []
        return parts if isinstance(parts, str) else "\n\n".join(part["text"] for part in parts)

    @property
    def prompt(self) -> str:
        """Everything the model would read, as one text to look things up in."""
        return self.system + "\n\n" + "\n\n".join(map(messages_api.text_of, self.json["messages"]))


class Target:
    """What a tier or job will answer, in order. Each method returns the target, to go on."""

    def __init__(self, plans: list[Plan], name: str) -> None:
        self._plans, self._name = plans, name

    def _then(self, plan: Plan) -> Self:
        if self._plans and self._plans[-1].times is None:
            self._plans.pop()
        self._plans.append(plan)
        return self

    def says(self, text: str, times: int | None = None, stop_reason: str = "end_turn") -> Self:
        return self._then(Plan((_text(text),), stop_reason=stop_reason, times=times))

    def streams(
        self, chunks: Sequence[str], delay_s: float = 0.0, times: int | None = None
    ) -> Self:
        """Text in exactly these pieces, with a pause before each."""
        block: Piece = ("text", tuple(chunks), {})
        return self._then(Plan((block,), delay_s=delay_s, times=times))

    def thinks(self, thought: str, then: str, times: int | None = None) -> Self:
        block = ("thinking", tuple(_pieces(thought)), {"signature": "signed"})
        return self._then(Plan((block, _text(then)), times=times))

    def calls_tool(
        self,
        name: str,
        input: Mapping[str, Any],
        *,
        saying: str = "",
        cut: bool = False,
        times: int | None = 1,
    ) -> Self:
        """A tool call, after some words; `cut`: the arguments end half-way, as at max_tokens."""
        written = json.dumps(input)
        if cut:
            written = written[: len(written) // 2]
        call = ("tool_use", tuple(_pieces(written, 12)), {"name": name})
        blocks = (_text(saying), call) if saying else (call,)
        return self._then(
            Plan(blocks, stop_reason="max_tokens" if cut else "tool_use", times=times)
        )

    def answers(self, answer: Mapping[str, Any], times: int | None = None) -> Self:
        """The structured answer of a job, through the tool it asks for."""
        call = ("tool_use", tuple(_pieces(json.dumps(answer), 40)), {"name": None})
        return self._then(Plan((call,), stop_reason="tool_use", times=times))

    def fails(
        self,
        status: int,
        retry_after: float | str | None = None,
        times: int | None = 1,
        message: str = "Failed by script.",
    ) -> Self:
        asked = None if retry_after is None else str(retry_after)
        return self._then(Plan(status=status, retry_after=asked, message=message, times=times))

    def cuts_off(
        self, after: int = 1, text: str = "one two three", *, cleanly: bool = False, times: int = 1
    ) -> Self:
        """After so many words the connection breaks, or `cleanly` the answer just ends there."""
        block: Piece = ("text", tuple(_pieces(text, 1)), {})
        return self._then(Plan((block,), cut_after=after, ends_cleanly=cleanly, times=times))

    def errs_midway(self, status: int, after: int = 1, times: int = 1) -> Self:
        """An error event in a stream that began well."""
        block: Piece = ("text", tuple(_pieces("one two three", 1)), {})
        return self._then(Plan((block,), status=status, error_after=after, times=times))

    def hangs(self, *, before_headers: bool = False, times: int = 1) -> Self:
        """Silence until the client goes away."""
        return self._then(Plan(hangs="before" if before_headers else "after", times=times))


class FakeAnthropic:
    """The server; a context manager.

    `url` is its base URL, `requests` what has come so far, over how many `connections`.
    """

    def __init__(self, port: int = 0, *, refuses_forced_tools: bool = False) -> None:
        self.requests: list[Seen] = []
        self.refuses_forced_tools = refuses_forced_tools
        self.is_closing = threading.Event()
        self.connections = 0
        self._scripts: dict[str, list[Plan]] = {}
        self._limits: dict[str, int] = {}
        self._cached: set[str] = set()
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"fake": self})
        self._server = _Server(("127.0.0.1", port), handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closing.set()
        self._server.shutdown()
        self._server.server_close()

    def on(self, target: str) -> Target:
        return Target(self._scripts.setdefault(target, []), target)

    def takes_prompts_up_to(self, tokens: int, tier: str = "reply") -> None:
        """Longer ones are refused, as a model refuses what does not fit its window."""
        self._limits[tier] = tokens

    def forget(self) -> None:
        """Scripts, limits, requests and the prompt cache."""
        self._limits.clear()
        self.requests.clear()
        self._scripts.clear()
        self._cached.clear()

    def seen(self, target: str) -> list[Seen]:
        """The requests of one tier or job."""
        return [request for request in self.requests if target in (request.tier, request.job)]

    def plan_for(self, seen: Seen) -> Plan:
        with self._lock:
            self.requests.append(seen)
            if problem := messages_api.refusal(seen.json, self.refuses_forced_tools):
                return Plan(status=400, message=problem)
            size, most = messages_api.prompt_tokens(seen.json), self._limits.get(seen.tier)
            if most is not None and size > most:
                problem = f"prompt is too long: {size} tokens > {most} maximum"
                return Plan(status=400, message=problem)
            for name in (seen.job, seen.tier):
                plans = self._scripts.get(name or "", [])
                if plans:
                    return _take(plans)
        return _unscripted(seen)

    def usage_for(self, body: Mapping[str, Any]) -> dict[str, int]:
        """As the API counts: read up to the longest prefix kept before, written up to a breakpoint.

        A kept prefix is found if it ends at a breakpoint or in the blocks before one, and if it was
        sent with the same effort. The smallest prompt that is kept is not imitated: here short ones
        are kept too.
        """
        effort = (body.get("output_config") or {}).get("effort", "")
        digest = hashlib.sha256(f"{body['model']} {effort}".encode())
        ends: list[tuple[str, int]] = []
        marks: list[int] = []
        total = read = 0
        for place, (text, is_breakpoint) in enumerate(messages_api.prompt_parts(body)):
            digest.update(text.encode())
            total += messages_api.tokens(text)
            ends.append((digest.hexdigest(), total))
            if is_breakpoint:
                marks.append(place)
        with self._lock:
            for mark in marks:
                seen = ends[max(0, mark - LOOKBACK_BLOCKS) : mark + 1]
                read = max([read, *(at for prefix, at in seen if prefix in self._cached)])
            self._cached.update(ends[mark][0] for mark in marks)
        marked = ends[marks[-1]][1] if marks else 0
        return {
            "input_tokens": total - marked,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": marked - read,
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that goes away is part of many tests, not worth a traceback.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Gone(Exception):
    pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake: FakeAnthropic

    def log_message(self, format: str, *args: object) -> None:
        pass

    def setup(self) -> None:
        super().setup()
        self.fake.connections += 1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        seen = Seen(
            headers={name.lower(): value for name, value in self.headers.items()},
            json=body,
            tier=messages_api.tier(body["model"]),
            job=messages_api.job(body),
            path=self.path,
        )
        if self.path != "/v1/messages":
            self._send_json(404, messages_api.error(404, "There is no such path."))
            return
        plan = self.fake.plan_for(seen)
        try:
            self._answer(plan, seen)
        except (_Gone, BrokenPipeError, ConnectionResetError):
            seen.was_dropped.set()
            self.close_connection = True

    def _answer(self, plan: Plan, seen: Seen) -> None:
        if plan.hangs == "before":
            self._pause(HANG_LIMIT_S)
        if plan.status != 200 and plan.error_after is None:
            self._send_json(
                plan.status, messages_api.error(plan.status, plan.message), plan.retry_after
            )
        elif seen.json.get("stream"):
            self._send_stream(plan, seen)
        else:
            self._pause(plan.delay_s)
            self._send_json(200, self._message(plan, seen))

    def _message(self, plan: Plan, seen: Seen) -> dict[str, Any]:
        content = []
        for kind, pieces, extra in plan.blocks:
            block = messages_api.opened(kind, extra.get("name") or seen.job or "answer")
            said = "".join(pieces)
            if kind == "tool_use":
                block["input"] = json.loads(said)
            else:
                block[kind] = said
            content.append(block | ({"signature": "signed"} if kind == "thinking" else {}))
        usage = self.fake.usage_for(seen.json) | {"output_tokens": _output_tokens(plan)}
        return messages_api.envelope(seen.json["model"]) | {
            "content": content, "stop_reason": plan.stop_reason, "usage": usage,
        }  # fmt: skip

    def _send_json(
        self, status: int, body: Mapping[str, Any], retry_after: str | None = None
    ) -> None:
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.send_header("request-id", "req_fake")
        if retry_after is not None:
            self.send_header("retry-after", retry_after)
        self.end_headers()
        self.wfile.write(payload)

    def _send_stream(self, plan: Plan, seen: Seen) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("request-id", "req_fake")
        self.end_headers()
        usage = self.fake.usage_for(seen.json) | {"output_tokens": 1}
        start = messages_api.envelope(seen.json["model"]) | {
            "content": [],
            "stop_reason": None,
            "usage": usage,
        }
        self._send_event("message_start", message=start)
        self._send_event("ping")
        if plan.hangs:
            self._pause(HANG_LIMIT_S)
        sent = 0
        for index, (kind, pieces, extra) in enumerate(plan.blocks):
            self._send_event(
                "content_block_start",
                index=index,
                content_block=messages_api.opened(kind, extra.get("name") or seen.job or "answer"),
            )
            for piece in pieces:
                if plan.cut_after == sent and plan.ends_cleanly:
                    self._end_chunks()
                    return
                if plan.cut_after == sent:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    raise _Gone
                if plan.error_after == sent:
                    self._send_event(
                        "error", error=messages_api.error(plan.status, "midway")["error"]
                    )
                    self._end_chunks()
                    return
                self._pause(plan.delay_s)
                self._send_event(
                    "content_block_delta", index=index, delta=messages_api.delta(kind, piece)
                )
                sent += 1
            if kind == "thinking":
                signature = {"type": "signature_delta", "signature": extra["signature"]}
                self._send_event("content_block_delta", index=index, delta=signature)
            self._send_event("content_block_stop", index=index)
        self._send_event(
            "message_delta",
            delta={"stop_reason": plan.stop_reason, "stop_sequence": None},
            usage={"output_tokens": _output_tokens(plan)},
        )
        self._send_event("message_stop")
        self._end_chunks()

    def _send_event(self, kind: str, **fields: Any) -> None:
        payload = json.dumps({"type": kind, **fields})
        event = f"event: {kind}\ndata: {payload}\n\n".encode()
        self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")

    def _end_chunks(self) -> None:
        self.wfile.write(b"0\r\n\r\n")

    def _pause(self, seconds: float) -> None:
        """Wait, unless the client goes away, which raises."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self.fake.is_closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], min(left, 0.02))
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                raise _Gone


# --- What is answered ---------------------------------------------------------------------------


def _take(plans: list[Plan]) -> Plan:
    plan = plans[0]
    if plan.times is not None:
        if plan.times > 1:
            plans[0] = replace(plan, times=plan.times - 1)
        else:
            plans.pop(0)
    return plan


def _unscripted(seen: Seen) -> Plan:
    if seen.job is not None:
        schema = next(t for t in seen.json["tools"] if t["name"] == seen.job)["input_schema"]
        answer = json.dumps(messages_api.smallest(schema))
        return Plan((("tool_use", (answer,), {"name": seen.job}),), stop_reason="tool_use")
    said = [
        block["text"] for block in messages_api.blocks(seen.json["messages"][-1]) if "text" in block
    ]
    return Plan((_text(f"You said: {said[-1] if said else 'nothing'}"),))


def _text(text: str) -> tuple[str, tuple[str, ...], Mapping[str, Any]]:
    return ("text", tuple(_pieces(text)), {})


def _pieces(text: str, size: int = 3) -> list[str]:
    """Pieces of so many words (of characters, for JSON, where words are rare)."""
    if text.startswith(("{", "[")):
        return [text[start : start + size] for start in range(0, len(text), size)]
    words = re.findall(r"\S+\s*|\s+", text)
    return ["".join(words[start : start + size]) for start in range(0, len(words), size)]


def _output_tokens(plan: Plan) -> int:
    return max(1, sum(len("".join(pieces)) for _, pieces, _ in plan.blocks) // 4)


def main() -> None:
    parser = argparse.ArgumentParser(description="A server that speaks the Messages API.")
    parser.add_argument("--port", type=int, default=9999)
    parser.add_argument("--says", help="the reply to everything; without it, replies echo")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each piece")
    parser.add_argument("--refuses-forced-tools", action="store_true", help="as Sonnet 5.5 does")
    options = parser.parse_args()
    with FakeAnthropic(options.port, refuses_forced_tools=options.refuses_forced_tools) as fake:
        if options.says:
            fake.on("reply").streams(_pieces(options.says), delay_s=options.delay)
        print(f"ANTHROPIC_BASE_URL={fake.url}", flush=True)  # noqa: T201
        threading.Event().wait()


if __name__ == "__main__":
    main()
