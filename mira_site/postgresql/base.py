"""Django's PostgreSQL backend, which carries the isolation scope into the session.

The scope is written with set_config(…, is_local=false) only when it differs from what the session
holds. A rollback undoes a set_config made inside the transaction, so what the session holds is
unknown after one and is written again before the next statement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.backends.postgresql import base
from django.db.backends.utils import CursorWrapper
from psycopg.pq import Format

from mira_site import isolation


class _BoundCursor(base.ServerBindingCursor):
    prepared = False

    def execute(self, query: Any, params: Any = None) -> Any:
        return super().execute(query, params, prepare=self.prepared)  # type: ignore[misc]


class DatabaseWrapper(base.DatabaseWrapper):
    """The PostgreSQL connection with `mira.user_id` and `mira.all_users` kept in step."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._session_scope: isolation.Scope | None = None
        self.execute_wrappers.append(self._write_scope)

    def init_connection_state(self) -> None:
        self._session_scope = None
        super().init_connection_state()

    def bound_cursor(self, *, binary: bool = False, prepared: bool = False) -> CursorWrapper:
        """A cursor that sends values beside the statement, each once.

        `binary`: rows come as PostgreSQL keeps them; for many bytes. `prepared`: a statement is
        planned once a connection and kept; for texts of which there are few, and whose plan does
        not depend on their values (a cast of a value would be made anew for each row).
        """
        self.ensure_connection()
        # Django forbids it for poolers that share sessions; the scope would not outlive those.
        self.connection.prepare_threshold = 1
        cursor = _BoundCursor(self.connection)  # type: ignore[call-arg]
        cursor.format = Format.BINARY if binary else Format.TEXT  # type: ignore[attr-defined]
        cursor.prepared = prepared
        return self._prepare_cursor(cursor)  # type: ignore[attr-defined, no-any-return]

    def _write_scope(
        self,
        execute: Callable[..., Any],
        sql: Any,
        params: Any,
        many: bool,
        context: dict[str, Any],
    ) -> Any:
        scope = isolation.current()
        if scope != self._session_scope and self.connection is not None:
            # The driver's own cursor: this statement must not run through the wrapper again.
            with self.connection.cursor() as cursor:
                cursor.execute(
                    "SELECT set_config('mira.user_id', %s, false),"
                    " set_config('mira.all_users', %s, false)",
                    (scope.user_id, "on" if scope.all_users else "off"),
                )
            self._session_scope = scope
        return execute(sql, params, many, context)

    def _rollback(self) -> None:
        self._session_scope = None
        super()._rollback()  # type: ignore[misc]  # django-stubs leave it out

    def _savepoint_rollback(self, sid: str) -> None:
        # After an error PostgreSQL takes no statement before this one: there is nothing to write.
        self._session_scope = isolation.current()
        super()._savepoint_rollback(sid)  # type: ignore[misc]
        self._session_scope = None

    def _close(self) -> None:
        self._session_scope = None
        super()._close()  # type: ignore[misc]
