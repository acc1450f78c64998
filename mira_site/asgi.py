"""HTTP and WebSocket."""

from __future__ import annotations

import os
import threading

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mira_site.settings")

from django.core.asgi import get_asgi_application

http = get_asgi_application()  # loads the apps; what follows needs them

from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import path

from conversations.consumers import ChatConsumer
from mira_site import embeddings
from mira_site.sockets import SocketAuthentication

# Recall over the API embeds in this process. Loading begins once the site has answered for a while.
WARM_AFTER_S = 5.0
_timer = threading.Timer(WARM_AFTER_S, embeddings.warm)
_timer.daemon = True
_timer.start()

application = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": SocketAuthentication(
            URLRouter([path("ws/chat/", ChatConsumer.as_asgi())]),
        ),
    }
)
