"""What each call cost: one ModelCall a question asked, its retries included."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import structlog
from django.db import DatabaseError, transaction

from mira_site import isolation
from mira_site.llm import budget, prices
from mira_site.llm.models import ModelCall
from mira_site.llm.types import Tier, Usage

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Turn:
    """The run of a turn that calls are made for."""

    id: uuid.UUID
    is_under_way: bool = False  # a call for its reply has gone out


_turn: ContextVar[_Turn | None] = ContextVar("mira_llm_turn", default=None)


@contextmanager
def calls_for(*, turn_id: uuid.UUID) -> Iterator[None]:
    """Calls made within the block are recorded as made for this turn."""
    token = _turn.set(_Turn(turn_id))
    try:
        yield
    finally:
        _turn.reset(token)


def reply_is_under_way() -> bool:
    """Has this run of a turn asked for its reply before?"""
    turn = _turn.get()
    return turn is not None and turn.is_under_way


def note_reply() -> None:
    """This run of a turn asks for its reply."""
    turn = _turn.get()
    if turn is not None:
        turn.is_under_way = True


def record(
    *, job: str, tier: Tier, model: str, usage: Usage, took_ms: int, outcome: ModelCall.Outcome
) -> uuid.UUID | None:
    """Write down a call of the user in scope. A database that fails does not cost the answer.

    Without a user in scope nothing is written, and the result is None.
    """
    user_id = isolation.current().user_id
    if not user_id:
        log.warning("model_call.not_recorded", job=job, reason="no_user")
        return None
    turn = _turn.get()
    try:
        with transaction.atomic():
            call = ModelCall.objects.create(
                user_id=user_id,
                turn_id=turn.id if turn is not None else None,
                job=job,
                tier=tier,
                model=model,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cache_read_tokens=usage.cache_read_tokens,
                cache_write_tokens=usage.cache_write_tokens,
                cost=prices.cost(model, usage),
                took_ms=took_ms,
                outcome=outcome,
            )
    except DatabaseError as error:
        log.error("model_call.not_recorded", job=job, reason=type(error).__name__)
        return None
    budget.spent_more()
    return call.pk


def mark_bad_answer(call_id: uuid.UUID | None) -> None:
    """The call went well, its answer was of no use."""
    user_id = isolation.current().user_id
    if call_id is None or not user_id:
        return
    calls = ModelCall.objects.for_user(user_id).filter(pk=call_id)
    calls.update(outcome=ModelCall.Outcome.BAD_ANSWER)
