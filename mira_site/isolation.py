"""Whose rows may be seen: the scope, and the policies that enforce it in PostgreSQL.

The scope is a context variable, so it follows a request through async code and never crosses to
another task or thread. The database connection (mira_site/postgresql) writes it into two settings
of the PostgreSQL session before a statement runs; row-level security reads them. No scope, no rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import structlog
from celery.contrib.django.task import DjangoTask
from django.db import migrations
from django.http import HttpRequest, HttpResponse

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Scope:
    """Rows of one user, of everybody (with a stated reason), or of nobody."""

    user_id: str = ""
    all_users: bool = False


NOBODY = Scope()
_scope: ContextVar[Scope] = ContextVar("mira_scope", default=NOBODY)


def current() -> Scope:
    return _scope.get()


@contextmanager
def acting_as(user_id: uuid.UUID | str) -> Iterator[None]:
    """Within the block only rows of this user exist."""
    token = _scope.set(Scope(user_id=str(uuid.UUID(str(user_id)))))
    try:
        with structlog.contextvars.bound_contextvars(user=str(user_id)):
            yield
    finally:
        _scope.reset(token)


@contextmanager
def all_users(reason: str, *, routine: bool = False) -> Iterator[None]:
    """Within the block rows of everybody are visible. For staff and schedulers; it is logged.

    `routine` is for what beat does every few seconds or minutes: it is logged at level debug.
    Raises ValueError without a reason.
    """
    if not reason.strip():
        raise ValueError("all_users() needs a reason.")
    write = log.debug if routine else log.info
    write("isolation.all_users_entered", reason=reason)
    token = _scope.set(Scope(all_users=True))
    try:
        yield
    finally:
        _scope.reset(token)


def enter(user_id: uuid.UUID | str) -> None:
    """Set the scope until the enclosing IsolationMiddleware ends the request (token sign-in)."""
    _scope.set(Scope(user_id=str(uuid.UUID(str(user_id)))))


class IsolationMiddleware:
    """Scopes a request to its signed-in user, and always leaves the scope as it was."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        user = getattr(request, "user", None)
        signed_in = user is not None and user.is_authenticated
        token = _scope.set(
            Scope(user_id=str(user.pk)) if user is not None and signed_in else NOBODY
        )
        try:
            return self.get_response(request)
        finally:
            _scope.reset(token)


class UserTask(DjangoTask):
    """A Celery task whose first argument is the id of the user it acts for."""

    abstract = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        user_id = args[0] if args else kwargs["user_id"]
        with acting_as(user_id):
            return super().__call__(*args, **kwargs)


# Evaluated once per statement, as scalar subqueries, not once per row.
POLICY = """
    user_id = (SELECT NULLIF(current_setting('mira.user_id', true), '')::uuid)
    OR (SELECT current_setting('mira.all_users', true)) = 'on'
"""


class EnableRowSecurity(migrations.RunSQL):
    """Migration operation: forced row-level security by `user_id` on the given tables."""

    def __init__(self, *tables: str) -> None:
        super().__init__(
            sql=[statement for table in tables for statement in _enable(table)],
            reverse_sql=[statement for table in tables for statement in _disable(table)],
            elidable=False,
        )
        self.tables = tables

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return (self.__class__.__qualname__, list(self.tables), {})

    def describe(self) -> str:
        return f"Row-level security on {', '.join(self.tables)}"


def _enable(table: str) -> list[str]:
    return [
        f'ALTER TABLE "{table}" ENABLE ROW LEVEL SECURITY',
        f'ALTER TABLE "{table}" FORCE ROW LEVEL SECURITY',
        f'CREATE POLICY "{table}_owner" ON "{table}" USING ({POLICY}) WITH CHECK ({POLICY})',
    ]


def _disable(table: str) -> list[str]:
    return [
        f'DROP POLICY "{table}_owner" ON "{table}"',
        f'ALTER TABLE "{table}" NO FORCE ROW LEVEL SECURITY',
        f'ALTER TABLE "{table}" DISABLE ROW LEVEL SECURITY',
    ]
