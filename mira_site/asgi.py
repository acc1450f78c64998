"""HTTP, WebSocket and MCP."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mira_site.settings")

from django.core.asgi import get_asgi_application

http = get_asgi_application()  # loads the apps; what follows needs them

from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import path

from conversations.consumers import ChatConsumer
from mira_site import bodies, embeddings, mcp_http
from mira_site.sockets import SocketAuthentication

# Recall over the API embeds in this process; the workers load first.
WARM_AFTER_S = 25.0
embeddings.warm(after_s=WARM_AFTER_S)

application = ProtocolTypeRouter(
    {
        "http": mcp_http.beside(bodies.limited(http)),
        "websocket": SocketAuthentication(
            URLRouter([path("ws/chat/", ChatConsumer.as_asgi())]),
        ),
    }
)
