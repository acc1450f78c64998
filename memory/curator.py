"""A model at a desk: asked, answered by its tools, asked on, until it says that it has finished.

Bounded in rounds, in time and in words. It either finishes properly or has done nothing.
"""

from __future__ import annotations

import time

import structlog

from memory.constants import (
    CURATION_ITERATIONS_MAX,
    CURATION_LIMIT_S,
    CURATION_MAX_TOKENS,
)
from memory.staging import Desk
from mira_site.errors import LLMUnavailable, ModelOutputError
from mira_site.llm import client, usage
from mira_site.llm.types import (
    ChatMessage,
    Finished,
    ModelRequest,
    SystemSection,
    Text,
    Tier,
)

log = structlog.get_logger(__name__)

GO_ON = "Go on. Nothing is done until you call `finish` with a verdict for every memory."


def tend(desk: Desk, *, system: str, question: str, job: str) -> None:
    """Fill the desk. Raises LLMUnavailable, LLMRefused, ModelOutputError; then forget the desk."""
    messages = [ChatMessage(role="user", content=question)]
    until = time.monotonic() + CURATION_LIMIT_S
    for _ in range(CURATION_ITERATIONS_MAX):
        finished = _ask(desk, system, messages, job, left_s=until - time.monotonic())
        results = [desk.do(call) for call in finished.tool_calls]
        if desk.is_finished:
            log.info("curation.finished", job=job, memories=len(desk.handed))
            return
        messages += [
            ChatMessage(role="assistant", content=finished.content),
            ChatMessage(role="user", content=(*results, Text(text=GO_ON))),
        ]
    raise ModelOutputError("The curator did not come to an end. It is asked again later.")


def _ask(
    desk: Desk, system: str, messages: list[ChatMessage], job: str, *, left_s: float
) -> Finished:
    """One round. Raises ModelOutputError for an answer that is empty, cut off or declined."""
    if left_s <= 0:
        raise LLMUnavailable("The curator took too long. It is asked again later.")
    finished = client.complete(
        ModelRequest(
            tier=Tier.BACKGROUND,
            job=job,
            system=(SystemSection(text=system),),
            messages=tuple(messages),
            tools=desk.specs(),
            max_tokens=CURATION_MAX_TOKENS,
            deadline_s=left_s,
        )
    )
    said = finished.tool_calls or finished.text.strip()
    if not said or finished.stop_reason in ("max_tokens", "refusal"):
        usage.mark_bad_answer(finished.call_id)
        raise ModelOutputError("The curator's answer was empty, cut off or declined.")
    return finished
