"""What a person wrote stays out of the logs, also where something breaks on it."""

from __future__ import annotations

import io
import json
import logging

import pytest
import structlog
from django.db import DatabaseError, connection, transaction
from pydantic import BaseModel

from mira_site import logconfig
from mira_site.errors import Conflict

SECRET = "Zanzibarium"


class Number(BaseModel):
    value: int


@pytest.fixture(params=["console", "json"])
def logged(request):
    """`logged(error)`: the log's lines after `log.exception` in a block that raised it."""
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(logconfig.formatter(request.param, colours=False))
    logger = logging.getLogger("tests.logconfig")
    logger.addHandler(handler)
    logger.propagate = False

    def logged(work) -> str:
        try:
            work()
        except Exception:
            logger.exception("work.broke")
            structlog.stdlib.get_logger("tests.logconfig").exception("work.broke_again")
        text = handler.stream.getvalue()
        if request.param == "json":
            assert all(json.loads(line) for line in text.splitlines())
        return text

    yield logged
    logger.removeHandler(handler)


@pytest.mark.django_db
def test_what_the_database_cannot_take_is_not_printed(logged):
    def refused() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT %s::uuid", [SECRET])

    with pytest.raises(DatabaseError, match=SECRET):
        refused()
    text = logged(refused)
    assert SECRET not in text
    for shown in ("DataError", "22P02", "refused", "test_logconfig.py", "which led to"):
        assert shown in text


def test_what_cannot_be_read_is_not_printed(logged):
    text = logged(lambda: Number.model_validate({"value": SECRET}))
    assert SECRET not in text and "ValidationError" in text
    text = logged(lambda: int(SECRET))
    assert SECRET not in text and "ValueError" in text


def test_errors_of_ours_and_of_programs_keep_their_words(logged):
    def ours() -> None:
        raise Conflict("Wait for the answer.")

    def programs() -> None:
        None.nothing  # type: ignore[attr-defined]  # noqa: B018

    assert "Wait for the answer." in logged(ours)
    assert "has no attribute" in logged(programs)


def test_causes_are_told_too(logged):
    def chained() -> None:
        try:
            int(SECRET)
        except ValueError as error:
            raise Conflict("Not a number.") from error

    text = logged(chained)
    assert SECRET not in text
    assert "ValueError" in text and "Not a number." in text
