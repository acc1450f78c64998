"""The signature of a delivery (pure): HMAC-SHA256 over the time of sending, a dot and the body."""

from __future__ import annotations

import hashlib
import hmac


def signature(secret: str, *, timestamp: int, body: bytes) -> str:
    """The value of X-MIRA-Signature; `timestamp` is that of X-MIRA-Timestamp, in Unix seconds."""
    signed = f"{timestamp}.".encode() + body
    return "sha256=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
