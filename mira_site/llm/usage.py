"""What each call cost: one ModelCall a question asked, its retries included."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import structlog
from django.db import DatabaseError, transaction

from mira_site import isolation
from mira_site.llm import budget, choices, keys, prices
from mira_site.llm.models import ModelCall, ModelSettings
from mira_site.llm.types import Tier, Usage

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Asker:
    """What a person set about models, and the key of their own, "" if they have none."""

    chosen: ModelSettings | None
    key: str


@dataclass(slots=True)
class _Turn:
    """The run of a turn that calls are made for."""

    id: uuid.UUID
    is_under_way: bool = False  # a call for its reply has gone out
    asker: Asker | None = None
    held: list[ModelCall] = field(default_factory=list)  # to be written when there is time


_turn: ContextVar[_Turn | None] = ContextVar("mira_llm_turn", default=None)


@contextmanager
def calls_for(*, turn_id: uuid.UUID) -> Iterator[None]:
    """Calls made within the block are recorded as made for this turn."""
    token = _turn.set(_Turn(turn_id))
    try:
        yield
    finally:
        write_held()
        _turn.reset(token)


def asker() -> Asker:
    """Who asks: the user in scope. Within a run of a turn they are read once, so what they change
    meanwhile counts from the next one on.
    """
    turn = _turn.get()
    if turn is None:
        return Asker(chosen=choices.in_scope(), key=keys.in_scope())
    if turn.asker is None:
        turn.asker = Asker(chosen=choices.in_scope(), key=keys.in_scope())
    return turn.asker


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

    A fast call of a turn stands before its answer, so it is written a little later (`write_held`).
    Without a user in scope nothing is written, and the result is None.
    """
    user_id = isolation.current().user_id
    if not user_id:
        log.warning("model_call.not_recorded", job=job, reason="no_user")
        return None
    turn = _turn.get()
    call = ModelCall(
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
    if turn is not None and tier is Tier.FAST and not turn.is_under_way:
        turn.held.append(call)
        return call.pk
    return call.pk if _write([call]) else None


def write_held() -> None:
    """Write down what this run of a turn has put off."""
    turn = _turn.get()
    if turn is not None and turn.held:
        held, turn.held = turn.held, []
        _write(held)


def _write(calls: Sequence[ModelCall]) -> bool:
    try:
        with transaction.atomic():
            ModelCall.objects.bulk_create(calls)
    except DatabaseError as error:
        jobs = [call.job for call in calls]
        log.error("model_call.not_recorded", jobs=jobs, reason=type(error).__name__)
        return False
    budget.spent_more()
    return True


def mark_bad_answer(call_id: uuid.UUID | None) -> None:
    """The call went well, its answer was of no use."""
    user_id = isolation.current().user_id
    if call_id is None or not user_id:
        return
    turn = _turn.get()
    for call in turn.held if turn is not None else ():
        if call.pk == call_id:
            call.outcome = ModelCall.Outcome.BAD_ANSWER
            return
    calls = ModelCall.objects.for_user(user_id).filter(pk=call_id)
    calls.update(outcome=ModelCall.Outcome.BAD_ANSWER)
