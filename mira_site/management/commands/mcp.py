"""mcp: MIRA's memory for one person's AI program, over its standard input and output."""

from __future__ import annotations

import signal
from typing import Any
from uuid import UUID

import anyio
from django.core.management.base import BaseCommand, CommandError, CommandParser
from mcp.server.stdio import stdio_server

from mira_site import embeddings
from mira_site.accounts import selectors as accounts
from mira_site.errors import NotFound
from mira_site.mcp import server_for


class Command(BaseCommand):
    help = (
        "Serve the Model Context Protocol over stdio, as this person. An AI program starts it; "
        "it ends with its input. Nothing but the protocol goes to standard output, logs go to "
        "standard error. MIRA's database must run."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", required=True, help="username or e-mail address")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            user = accounts.user_named(options["user"])
        except NotFound as error:
            raise CommandError(str(error)) from error
        if not user.is_active:
            raise CommandError("This account is closed.")
        # Input is awaited in a thread that only more input ends; Ctrl-C is not to wait for that.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        embeddings.warm()
        anyio.run(_serve, user.pk)


async def _serve(user_id: UUID) -> None:
    server = server_for(user_id)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
