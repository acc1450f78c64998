"""Tables of the memory app, by subject."""

from __future__ import annotations

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
    "ForgetReceipt",
    "Memory",
    "MemoryAccess",
    "MemoryEntity",
    "MemoryLink",
    "MemoryQuerySet",
    "MemoryRevision",
    "MemorySource",
    "Merge",
    "MergeSource",
    "Stakes",
    "Trust",
    "Work",
]
