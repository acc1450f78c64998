"""Tables of the memory app, by subject."""

from __future__ import annotations

from memory.models.changes import MemoryChange
from memory.models.forms import Fingerprint, Passage, TokenVectors
from memory.models.graph import (
    Entity,
    EntityKey,
    EntityMergeProposal,
    MemoryEntity,
    MemoryLink,
)
from memory.models.memories import (
    Annotation,
    Extraction,
    Memory,
    MemoryAccess,
    MemoryQuerySet,
    MemoryRevision,
    MemorySource,
    Stakes,
    Trust,
)
from memory.models.upkeep import (
    Conflict,
    ForgetReceipt,
    Merge,
    MergeSource,
    Work,
)

__all__ = [
    "Annotation",
    "Conflict",
    "Entity",
    "EntityKey",
    "EntityMergeProposal",
    "Extraction",
    "Fingerprint",
    "ForgetReceipt",
    "Memory",
    "MemoryAccess",
    "MemoryChange",
    "MemoryEntity",
    "MemoryLink",
    "MemoryQuerySet",
    "MemoryRevision",
    "MemorySource",
    "Merge",
    "MergeSource",
    "Passage",
    "Stakes",
    "TokenVectors",
    "Trust",
    "Work",
]
