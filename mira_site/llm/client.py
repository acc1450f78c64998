"""The only module that talks to a provider.

Any server that speaks the Messages API will do. A call is streamed, always: then the time limit
counts between two pieces, not over the whole answer. It is tried again as long as nothing has come
of it; after that a break is an error, for half an answer cannot be taken back.
"""

from __future__ import annotations

import os
import random
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from urllib.parse import urlsplit

import anthropic
import httpx2
import structlog
from django.conf import settings

from mira_site.errors import (
    DependencyError,
    LLMBadKey,
    LLMContextTooLong,
    LLMOverloaded,
    LLMRateLimited,
    LLMRefused,
    LLMUnavailable,
    MiraError,
)
from mira_site.llm import budget, choices, constants, interruption, keys, usage, wire
from mira_site.llm.assembly import Assembler, RawEvent
from mira_site.llm.models import ModelCall
from mira_site.llm.types import Finished, ModelRequest, RequestSent, StreamEvent, Tier

log = structlog.get_logger(__name__)
BAD_KEY = "The model's provider does not accept the key: check ANTHROPIC_API_KEY."
BAD_OWN_KEY = (
    "The model's provider does not accept your own API key. Set another one, or delete it, at"
    " /settings/#key."
)
NO_MODEL = "The provider does not know the model: check MIRA_MODEL and its kin."
OWN_KEY_NO_MODEL = (
    "The provider does not know the model, or does not open it to your own API key. Look at"
    " /settings/#key."
)
OWN_KEY_NO_CREDIT = (
    "The model's provider wants to be paid: the account of your own API key has no credit left."
)
# Servers and models that have refused an order to call a tool; learned anew by each process.
_without_forced_tools: set[tuple[str, str]] = set()
_without_effort: set[tuple[str, str]] = set()


def is_configured() -> bool:
    """Is there a provider to ask for the user in scope? A key, theirs or the server's, or the
    address of a server that may not want one.
    """
    return bool(settings.ANTHROPIC_API_KEY or settings.ANTHROPIC_BASE_URL) or keys.is_in_scope()


def provider_host() -> str:
    """Where calls go, and keys with them."""
    return urlsplit(settings.ANTHROPIC_BASE_URL or constants.DEFAULT_BASE_URL).hostname or ""


def complete(
    request: ModelRequest,
    *,
    should_stop: Callable[[], bool] | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Finished:
    """The whole answer at once. Raises what `stream` raises.

    `meanwhile` is called when the request is on its way, with each try again.
    """
    finished: Finished | None = None
    for event in stream(request, should_stop=should_stop):
        if isinstance(event, RequestSent) and meanwhile is not None:
            meanwhile()
        if isinstance(event, Finished):
            finished = event
    if finished is None:
        raise LLMUnavailable("The model's answer broke off. Try again.")
    return finished


def stream(
    request: ModelRequest, *, should_stop: Callable[[], bool] | None = None
) -> Iterator[StreamEvent]:
    """The answer as it comes; Finished is the last event. Every call is recorded, see usage.py.

    `should_stop` is asked in the caller's thread after each event, and about five times a second
    while none comes; then the connection is closed and Finished says "stopped".
    Raises LLMUnavailable (LLMRateLimited, LLMOverloaded, LLMCapReached) or LLMRefused (LLMBadKey,
    LLMContextTooLong); tries again by itself only while nothing has been yielded.
    """
    asker = usage.asker()
    budget.check(request.tier, asker.chosen, is_under_way=usage.reply_is_under_way())
    if request.tier is Tier.REPLY:
        usage.note_reply()
    model = choices.model_for(request.tier, asker.chosen)
    call = _Call(request, should_stop, model=model, own_key=asker.key)
    outcome = ModelCall.Outcome.FAILED
    try:
        for event in call.events():
            if isinstance(event, RequestSent):
                usage.write_held()
            yield event
        finished = call.finished()
        outcome = ModelCall.Outcome.STOPPED if call.was_stopped else ModelCall.Outcome.OK
    except GeneratorExit:
        outcome = ModelCall.Outcome.STOPPED  # the caller has dropped it half-way
        raise
    finally:
        call_id = call.record(outcome)
    yield replace(finished, call_id=call_id)


class _Call:
    """One question: its tries, and the answer that comes of them."""

    def __init__(
        self,
        request: ModelRequest,
        should_stop: Callable[[], bool] | None,
        *,
        model: str,
        own_key: str,
    ) -> None:
        self.request = request
        self.model = model
        self._own_key = own_key
        self.was_stopped = False
        self._ask_to_stop = should_stop
        self._started = time.monotonic()
        self._answer = Assembler(self.model)

    def events(self) -> Iterator[StreamEvent]:
        tries = 0
        while True:
            tries += 1
            try:
                yield from self._attempt()
                return
            except DependencyError as error:
                if not self._may_retry(error, tries):
                    raise
                log.warning(
                    "model.call_retried", job=self.request.job, tries=tries, reason=error.code
                )
                self._wait(_wait_s(error, tries))
                if self.was_stopped:
                    return
            except LLMRefused as error:
                # No try is lost: the same request goes out once more, with a plea for the order, or
                # with the model's own effort.
                if not (self._learned_not_to_force(error) or self._learned_no_effort(error)):
                    raise
                tries -= 1

    def finished(self) -> Finished:
        return self._answer.finished(was_stopped=self.was_stopped)

    def record(self, outcome: ModelCall.Outcome) -> uuid.UUID | None:
        took_ms = round((time.monotonic() - self._started) * 1000)
        spent = self._answer.usage()
        log.info(
            "model.call_ended",
            job=self.request.job,
            model=self._answer.model,
            outcome=str(outcome),
            took_ms=took_ms,
            prompt_tokens=spent.prompt_tokens,
            cache_read_tokens=spent.cache_read_tokens,
            output_tokens=spent.output_tokens,
        )
        return usage.record(
            job=self.request.job,
            tier=self.request.tier,
            model=self._answer.model,
            usage=spent,
            took_ms=took_ms,
            outcome=outcome,
        )

    def _attempt(self) -> Iterator[StreamEvent]:
        self._answer = Assembler(self.model)
        body = wire.body(
            self.request,
            model=self.model,
            may_force=self._may_force(),
            takes_effort=self._takes_effort(),
        )
        with _our_errors(self.request.job, is_own_key=bool(self._own_key)):
            for event in self._raw_events(body):
                if event is None:
                    yield RequestSent()
                    continue
                yield from self._answer.feed(event)
                if self._answer.is_complete:
                    # The rest of the body is read on, so that the connection can serve again,
                    # but a stop that comes now comes too late.
                    self._ask_to_stop = None
                self._check_deadline()
        if not (self._answer.is_complete or self.was_stopped):
            raise LLMUnavailable("The model's answer broke off. Try again.")

    def _raw_events(self, body: wire.JSONObject) -> Iterator[RawEvent | None]:
        """What comes; before it None, where the caller need not wait for the connection."""
        connect = partial(
            _Events,
            body,
            key=self._own_key or settings.ANTHROPIC_API_KEY,
            read_timeout_s=self._time_left_s(),
        )
        if self._ask_to_stop is None and self.request.deadline_s is None:
            return iter(connect())
        # A read's own time limit begins anew with each piece: silence in between must end, too.
        return interruption.read(connect, should_stop=self._is_over, poll_s=constants.STOP_POLL_S)

    def _may_force(self) -> bool:
        if self.model.startswith(constants.WITHOUT_FORCED_TOOLS):
            return False
        return (settings.ANTHROPIC_BASE_URL, self.model) not in _without_forced_tools

    def _takes_effort(self) -> bool:
        if not self.model.startswith(constants.WITH_EFFORT):
            return False
        return (settings.ANTHROPIC_BASE_URL, self.model) not in _without_effort

    def _should_stop(self) -> bool:
        if self._ask_to_stop is not None and self._ask_to_stop():
            self.was_stopped = True
        return self.was_stopped

    def _may_retry(self, error: DependencyError, tries: int) -> bool:
        return (
            not self._answer.has_yielded
            and tries < self.request.tries
            and _wait_s(error, tries) < self._time_left_s()
        )

    def _is_over(self) -> bool:
        return self._should_stop() or (self._is_late() and not self._answer.is_complete)

    def _learned_not_to_force(self, error: LLMRefused) -> bool:
        if not (self.request.forced_tool and self._may_force()):
            return False
        if "tool_choice" not in _provider_message(error.__cause__):
            return False
        _without_forced_tools.add((settings.ANTHROPIC_BASE_URL, self.model))
        return True

    def _learned_no_effort(self, error: LLMRefused) -> bool:
        if not (self.request.effort and self._takes_effort()):
            return False
        said = _provider_message(error.__cause__)
        if "output_config" not in said and "effort" not in said:
            return False
        _without_effort.add((settings.ANTHROPIC_BASE_URL, self.model))
        return True

    def _wait(self, wait_s: float) -> None:
        until = time.monotonic() + wait_s
        while not self._should_stop() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, constants.STOP_POLL_S))

    def _time_left_s(self) -> float:
        if self.request.deadline_s is None:
            return float("inf")
        return max(0.1, self._started + self.request.deadline_s - time.monotonic())

    def _is_late(self) -> bool:
        limit_s = self.request.deadline_s
        return limit_s is not None and time.monotonic() - self._started > limit_s

    def _check_deadline(self) -> None:
        if self._is_late():
            raise LLMUnavailable("The model took too long. Try again.")


class _Events:
    """The events of one HTTP answer, as plain JSON; made, the connection stands."""

    def __init__(self, body: wire.JSONObject, *, key: str, read_timeout_s: float) -> None:
        timeout = anthropic.Timeout(
            min(read_timeout_s, constants.READ_TIMEOUT_S), connect=constants.CONNECT_TIMEOUT_S
        )
        sdk = _sdk(key, settings.ANTHROPIC_BASE_URL, os.getpid())
        # Not messages.create: its events become models of the SDK, at a price for each token,
        # and a server that leaves a field out would fail at some later attribute.
        self._stream = sdk.post(
            "/v1/messages",
            body=body,
            cast_to=object,
            stream=True,
            stream_cls=anthropic.Stream[object],
            options={"timeout": timeout},
        )

    def __iter__(self) -> Iterator[RawEvent]:
        with self._stream as events:
            for event in events:
                if isinstance(event, dict):
                    yield event

    def abort(self) -> None:
        """End the answer from another thread. Closing would not: a read may be waiting on it."""
        response = self._stream.response
        connection = response.extensions.get("network_stream")
        if connection is None or response.is_closed:
            return
        # The other side may have been faster.
        with suppress(OSError):
            connection.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


@lru_cache(maxsize=32)
def _sdk(key: str, base_url: str, process_id: int) -> anthropic.Anthropic:
    """One client, with its pool of connections, a provider and process (`process_id`).

    A fork would share its parent's sockets. Retries are ours; traces would carry texts.
    """
    key = key or constants.PLACEHOLDER_KEY
    return anthropic.Anthropic(
        api_key=key,
        base_url=base_url or constants.DEFAULT_BASE_URL,
        max_retries=0,
        open_telemetry=False,
        # The SDK sends the key as a bearer token; many proxies still look where it used to be.
        default_headers={"x-api-key": key} if base_url else None,
    )


@contextmanager
def _our_errors(job: str, *, is_own_key: bool) -> Iterator[None]:
    try:
        yield
    except anthropic.APIStatusError as error:
        log.warning(
            "model.call_failed",
            job=job,
            status=error.status_code,
            kind=error.type,
            request_id=error.request_id,
        )
        raise _status_error(error, is_own_key=is_own_key) from error
    except (anthropic.APIError, httpx2.HTTPError) as error:
        log.warning("model.call_failed", job=job, kind=type(error).__name__)
        raise LLMUnavailable("The model's provider cannot be reached. Try again.") from error
    except (KeyError, ValueError) as error:
        log.warning("model.call_failed", job=job, kind=type(error).__name__)
        raise LLMUnavailable("The provider's answer could not be read. Try again.") from error


def _status_error(error: anthropic.APIStatusError, *, is_own_key: bool) -> MiraError:
    """Ours for the provider's. An error in mid-stream has status 200, so its type counts too."""
    status, kind = error.status_code, error.type
    if status == 429 or kind == "rate_limit_error":
        return LLMRateLimited(
            "The model's provider asks to slow down. Try again in a while.",
            retry_after_s=_retry_after_s(error),
        )
    if status == 529 or kind == "overloaded_error":
        return LLMOverloaded("The model's provider is overloaded. Try again in a while.")
    if status >= 500 or status in (408, 409) or kind in ("api_error", "timeout_error"):
        return LLMUnavailable("The model's provider has a fault. Try again in a while.")
    if status in (401, 403) or kind in ("authentication_error", "permission_error"):
        return LLMBadKey(BAD_OWN_KEY if is_own_key else BAD_KEY)
    return _refusal(error, is_own_key=is_own_key)


def _refusal(error: anthropic.APIStatusError, *, is_own_key: bool) -> LLMRefused:
    said = _provider_message(error)
    if error.status_code == 413 or any(phrase in said for phrase in constants.TOO_LONG_PHRASES):
        return LLMContextTooLong("The prompt is too long for the model: make it shorter.")
    if error.status_code == 404:
        return LLMRefused(OWN_KEY_NO_MODEL if is_own_key else NO_MODEL)
    if error.status_code == 402 and is_own_key:
        return LLMRefused(OWN_KEY_NO_CREDIT)
    if error.status_code == 402:
        return LLMRefused("The model's provider wants to be paid: check the account's credit.")
    return LLMRefused("The model's provider refused the request: the log names its request id.")


def _provider_message(error: BaseException | None) -> str:
    """What the provider said, in lower case. To look things up in: it may quote the prompt."""
    if not isinstance(error, anthropic.APIStatusError):
        return ""
    return (error.api_message or error.message).lower()


def _retry_after_s(error: BaseException | None) -> float | None:
    """What the provider asked for in its `retry-after` header, if it named seconds."""
    if not isinstance(error, anthropic.APIStatusError):
        return None
    try:
        return max(0.0, float(error.response.headers.get("retry-after", "")))
    except ValueError:
        return None


def _wait_s(error: DependencyError, tries: int) -> float:
    asked_s = _retry_after_s(error.__cause__)
    if asked_s is not None:
        return min(asked_s, constants.RETRY_CAP_S)
    wait_s = settings.LLM_RETRY_BASE_S * 2 ** (tries - 1)
    # Jitter spreads callers that failed together; it need not be unguessable.
    jitter = random.uniform(1 - constants.RETRY_JITTER, 1 + constants.RETRY_JITTER)  # noqa: S311
    return float(min(wait_s * jitter, constants.RETRY_CAP_S))
