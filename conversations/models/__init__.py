"""Tables of the conversation, by subject."""

from __future__ import annotations

from conversations.models.attachments import Attachment, AttachmentBody
from conversations.models.cognition import (
    CompactionBrief,
    ComposedContext,
    ContextSection,
    Observation,
    SubcorticalRecord,
)
from conversations.models.thread import (
    ForgottenPassage,
    Message,
    Segment,
    SegmentQuerySet,
    SurfacedMemory,
    Thread,
    ToolCall,
    Turn,
    Veil,
)
from conversations.models.words import WordPlaces

__all__ = [
    "Attachment",
    "AttachmentBody",
    "CompactionBrief",
    "ComposedContext",
    "ContextSection",
    "ForgottenPassage",
    "Message",
    "Observation",
    "Segment",
    "SegmentQuerySet",
    "SubcorticalRecord",
    "SurfacedMemory",
    "Thread",
    "ToolCall",
    "Turn",
    "Veil",
    "WordPlaces",
]
