"""Structured logs: one event a line, for people on a console or as JSON for machines."""

from __future__ import annotations

import logging
import logging.config
import time
import traceback
import uuid
from collections.abc import Callable
from typing import Any, TextIO

import redis
import structlog
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse

from mira_site.errors import MiraError

log = structlog.get_logger(__name__)

CHATTY = (
    "httpx",
    "httpx2",
    "httpcore",
    "anthropic",
    "mcp",
    "uvicorn.access",
    "sentence_transformers",
    "transformers",
    "celery.app.trace",
    "celery.worker.strategy",
    "celery.beat",
)
QUIET_PATHS = ("/health/", "/static/", "/metrics")


SHARED: tuple[Any, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)
# Errors whose words are ours or the interpreter's. Those of others quote what broke: PostgreSQL
# the whole row, pydantic and int() what they could not read, and so what people wrote.
TOLD_IN_WORDS = (
    MiraError,
    AttributeError,
    ImportError,
    ImproperlyConfigured,
    NameError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    redis.RedisError,
)


def traceback_text(error: BaseException) -> str:
    """Where it broke, its causes first, with the words only of errors that quote nobody."""
    parts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        parts.append("".join([*traceback.format_tb(current.__traceback__), _named(current)]))
        is_hidden = current.__suppress_context__
        current = current.__cause__ or (None if is_hidden else current.__context__)
    return "\n\nwhich led to\n\n".join(reversed(parts))


def _named(error: BaseException) -> str:
    """The kind of error; of one of the database also its code."""
    kind = f"{type(error).__module__}.{type(error).__qualname__}"
    if isinstance(error, TOLD_IN_WORDS):
        return f"{kind}: {error}"
    code = getattr(error, "sqlstate", None)
    return f"{kind} ({code})" if code else kind


def _formatted(written: TextIO, exc_info: Any) -> None:
    written.write("\n" + traceback_text(exc_info[1]))


def _as_field(exc_info: Any) -> str:
    return traceback_text(exc_info[1])


def formatter(form: str, *, colours: bool) -> logging.Formatter:
    """Lines for people on a console, or JSON for machines (`form`: "console" or "json")."""
    finish: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if form == "json":
        finish.append(structlog.processors.ExceptionRenderer(_as_field))
        finish.append(structlog.processors.JSONRenderer())
    else:
        finish.append(structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=_formatted))
    return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=SHARED, processors=finish)


def configure(options: dict[str, Any]) -> None:
    """Set up structlog and route the standard library's logging through it."""
    structlog.configure(
        processors=[*SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=options["cached"],
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "mira": {
                    "()": formatter,
                    "form": options["format"],
                    "colours": options["colours"],
                }
            },
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "mira"}},
            "root": {"handlers": ["stderr"], "level": "INFO"},
            "loggers": {
                # Their lines carry addresses and bodies; ours carry what is needed.
                **{name: {"level": "WARNING"} for name in CHATTY},
                **{name: {"level": "ERROR"} for name in ("django.request", "django.security")},
            },
        }
    )


class RequestLogMiddleware:
    """Binds a request id and logs one line for each request: method, route, status, time."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        structlog.contextvars.clear_contextvars()
        with structlog.contextvars.bound_contextvars(request=uuid.uuid4().hex[:12]):
            response = self.get_response(request)
            if not request.path.startswith(QUIET_PATHS):
                # The route, not the path: a path may hold one-time tokens and ids.
                route = request.resolver_match.route if request.resolver_match else "unresolved"
                log.info(
                    "request.answered",
                    method=request.method,
                    route=route,
                    status=response.status_code,
                    took_ms=round((time.perf_counter() - started) * 1000),
                )
            return response
