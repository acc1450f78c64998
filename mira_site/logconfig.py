"""Structured logs: one event a line, for people on a console or as JSON for machines."""

from __future__ import annotations

import logging
import logging.config
import time
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse

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


def configure(options: dict[str, Any]) -> None:
    """Set up structlog and route the standard library's logging through it."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if options["format"] == "json"
        else structlog.dev.ConsoleRenderer(
            colors=options["colours"],
            # Rich tracebacks print local variables, and with them what people wrote.
            exception_formatter=structlog.dev.plain_traceback,
        )
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=options["cached"],
    )
    finish = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
    if options["format"] == "json":
        finish.insert(0, structlog.processors.format_exc_info)
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "mira": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": shared,
                    "processors": finish,
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
