"""Whatever a call does, the turn goes on with a result that says what to do."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import uuid4

import pytest
import structlog
from django.db import connection
from django.utils import timezone
from pydantic import BaseModel, Field

from memory.models import Memory
from mira_site.accounts.models import User
from mira_site.errors import BadRequest, ToolError
from mira_site.llm.types import ToolCall
from tests.factories import MemoryFactory
from toolbox import execution, registry
from toolbox.types import Answer, Tool, ToolContext, ToolOutcome

pytestmark = pytest.mark.django_db(transaction=True)


class Arguments(BaseModel):
    count: int = Field(ge=1, description="How many.")


def made(act: Callable[[ToolContext, Arguments], str | Answer], limit_s: float = 5) -> Tool:
    def probe(context: ToolContext, arguments: Arguments) -> str | Answer:
        """Does what the test wants."""
        return act(context, arguments)

    return registry.made("probe", probe, Arguments, summary="probed", limit_s=limit_s)


def context(user: User) -> ToolContext:
    return ToolContext(user=user, turn_id=uuid4(), segment_id=uuid4(), now=timezone.now())


def execute(user: User, tool: Tool, given: dict[str, object] | None = None) -> ToolOutcome:
    with registry.temporarily(tool):
        call = ToolCall(id="c1", name="probe", input={"count": 2} if given is None else given)
        return execution.execute(call, context(user))


def raising(error: Exception) -> Callable[[ToolContext, Arguments], str]:
    def act(context: ToolContext, arguments: Arguments) -> str:
        raise error

    return act


def test_a_result_comes_back_with_a_quiet_line(as_alice: User) -> None:
    outcome = execute(as_alice, made(lambda _, arguments: "x" * arguments.count))
    assert (outcome.text, outcome.is_error, outcome.summary) == ("xx", False, "probed")
    assert outcome.result.call_id == "c1"


def test_wrong_arguments_come_back_with_the_schema(as_alice: User) -> None:
    outcome = execute(as_alice, made(lambda *_: "never"), {"count": 0})
    assert outcome.is_error
    assert "count" in outcome.text
    assert '"minimum": 1' in outcome.text


def test_a_number_written_as_text_is_a_number(as_alice: User) -> None:
    assert execute(as_alice, made(lambda *_: "done"), {"count": "3", "more": True}).text == "done"


def test_cut_arguments_and_unknown_tools_are_results(as_alice: User) -> None:
    with registry.temporarily(made(lambda *_: "never")):
        cut = execution.execute(ToolCall(id="c", name="probe", malformed=True), context(as_alice))
        unknown = execution.execute(ToolCall(id="c", name="oracle"), context(as_alice))
    assert cut.is_error
    assert "schema" in cut.text
    assert "probe" in unknown.text


def test_our_errors_say_what_to_do_instead(as_alice: User) -> None:
    assert execute(as_alice, made(raising(ToolError("Ask for less.")))).text == "Ask for less."
    error = BadRequest("Wrong.", fields={"text": "Missing: Merula."})
    assert execute(as_alice, made(raising(error))).text == "Wrong.\nMissing: Merula."


def test_a_bug_is_logged_and_kind_and_tells_no_secret(as_alice: User) -> None:
    with structlog.testing.capture_logs() as logs:
        outcome = execute(as_alice, made(raising(ValueError("secret text"))), {"count": 77})
    assert outcome.is_error
    assert outcome.text == execution.BROKE
    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["tool.broke"]
    assert "77" not in str([{**entry, "exc_info": ""} for entry in logs if "took_ms" not in entry])


def test_a_long_result_is_cut_and_says_so(as_alice: User) -> None:
    outcome = execute(as_alice, made(lambda *_: "y" * 50_000))
    assert len(outcome.text) < 21_000
    assert "30,000 characters more" in outcome.text


def test_a_slow_tool_is_given_up(as_alice: User) -> None:
    started = time.monotonic()
    outcome = execute(as_alice, made(lambda *_: time.sleep(3) or "late", limit_s=0.3))
    assert time.monotonic() - started < 2
    assert outcome.is_error
    assert outcome.text == execution.TOO_LONG


def test_a_statement_ends_with_the_time_of_its_tool(as_alice: User) -> None:
    def sleep(*_: object) -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(30)")
        return "late"

    execute(as_alice, made(sleep, limit_s=0.3))
    time.sleep(0.5)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"
                       " AND state = 'active'")  # fmt: skip
        assert cursor.fetchone() == (0,)


def test_a_stopped_turn_does_not_wait_for_its_tool(as_alice: User) -> None:
    tool = made(lambda *_: time.sleep(3) or "late")
    with registry.temporarily(tool):
        call = ToolCall(id="c1", name="probe", input={"count": 1})
        started = time.monotonic()
        outcome = execution.execute(call, context(as_alice), should_stop=lambda: True)
    assert time.monotonic() - started < 2
    assert outcome.text == execution.STOPPED


@pytest.mark.usefixtures("embedder")
def test_a_tool_sees_the_rows_of_its_person_only(as_alice: User, bob: User) -> None:
    MemoryFactory(user=as_alice, text="Alice sails.")
    counted = made(lambda given, _: str(Memory.objects.filter(archived_at=None).count()))
    assert execute(as_alice, counted).text == "1"
