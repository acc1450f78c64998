"""Lasting memories, where they came from, and which segments were read for them."""

from __future__ import annotations

from datetime import datetime

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import models
from django.db.models.functions import Cast, Left
from pgvector.django import VectorField

from memory import wording
from memory.constants import (
    DEFAULT_TYPE,
    DEFAULT_WING,
    EMBEDDING_DIMENSIONS,
    PLACE_MAX_CHARS,
    ROOM_OF_TYPE,
)
from memory.visibility import visible
from mira_site.owned import Owned, OwnedQuerySet


class Trust(models.IntegerChoices):
    """Whose word a memory rests on. A merge takes the lowest of its sources."""

    OUTSIDE = 1, "read in outside text"
    TOOL = 2, "told by a tool"
    INFERRED = 3, "inferred"
    SAID = 4, "said by the person"


class Stakes(models.IntegerChoices):
    """What it would cost to have forgotten it; scoring.Stakes holds the same values."""

    TRIVIAL = 0
    ORDINARY = 1
    VITAL = 2


class MemoryQuerySet(OwnedQuerySet):
    def live(self) -> MemoryQuerySet:
        """Not archived. Expired rows are among them: that needs a clock, and is recall's to say."""
        return self.filter(archived_at__isnull=True)

    def visible(self, now: datetime, *, past: bool = False) -> MemoryQuerySet:
        """May come up at `now`; with `past` also what is no longer true; see visibility.py."""
        return self.filter(visible(now, past=past))


class Memory(Owned):
    """One self-contained fact about the person's world."""

    text = models.TextField()
    memory_type = models.CharField(max_length=30, default="fact")
    wing = models.CharField(max_length=PLACE_MAX_CHARS, default=DEFAULT_WING)
    room = models.CharField(max_length=PLACE_MAX_CHARS, default=ROOM_OF_TYPE[DEFAULT_TYPE])
    importance = models.FloatField(default=0.5)
    importance_by_person = models.FloatField(
        null=True, blank=True, help_text="What the person said it is; scoring keeps to it."
    )
    happens_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    said_at = models.DateTimeField(
        help_text="When its newest source was said; without one, when it was stored or is dated."
    )
    speaker = models.CharField(
        max_length=120, blank=True, default="", help_text="Whose words it quotes, where it does."
    )
    position = models.PositiveIntegerField(
        default=0, help_text="Its place among the memories made of its segment, as they were said."
    )
    created_at = models.DateTimeField()
    created_use_day = models.PositiveIntegerField(
        help_text="The person's use-days when it was stored."
    )
    updated_at = models.DateTimeField(auto_now=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    archive_reason = models.CharField(max_length=40, blank=True, default="")
    source_segment_id = models.UUIDField(
        null=True, blank=True, help_text="conversations.Segment it was extracted from."
    )
    text_hash = models.CharField(
        max_length=64, editable=False, help_text="SHA-256 of the normalised text and of happens_at."
    )
    trust = models.PositiveSmallIntegerField(choices=Trust, default=Trust.SAID)
    stakes = models.PositiveSmallIntegerField(choices=Stakes, default=Stakes.ORDINARY)
    valid_from = models.DateTimeField(
        null=True, blank=True, help_text="Since when it is true; unknown if empty."
    )
    valid_until = models.DateTimeField(
        null=True, blank=True, help_text="Since when it is no longer true: it is past then."
    )
    quarantined_at = models.DateTimeField(
        null=True, blank=True, help_text="Reads like an instruction; kept out until looked at."
    )
    muted_at = models.DateTimeField(
        null=True, blank=True, help_text="The person said: never mention this."
    )
    confirmed_at = models.DateTimeField(
        null=True, blank=True, help_text="The person said, or a look showed: this is right."
    )
    scored_at = models.DateTimeField(null=True, blank=True)
    tended_at = models.DateTimeField(
        null=True, blank=True, help_text="Last successful look of the curator."
    )
    metrics = models.JSONField(
        null=True, blank=True, help_text="Figures that a program keeps beside it, as it gave them."
    )
    embedding = VectorField(dimensions=EMBEDDING_DIMENSIONS)
    embedding_model = models.CharField(
        max_length=16,
        blank=True,
        default="",
        help_text="Fingerprint of the model it is by (embeddings.model_id); empty: unknown.",
    )
    search_vector = models.GeneratedField(
        expression=SearchVector("text", config="english"),
        output_field=SearchVectorField(),
        db_persist=True,
    )

    objects = MemoryQuerySet.as_manager()  # type: ignore[misc]  # it narrows Owned's

    class Meta:
        db_table = "memory_memories"
        verbose_name_plural = "memories"
        indexes = [
            models.Index(fields=["user", "-created_at", "-id"], name="memory_user_created"),
            models.Index(
                fields=["user", "source_segment_id", "position"], name="memory_user_place"
            ),
            models.Index(fields=["user", "-said_at", "-id"], name="memory_user_said"),
            models.Index(fields=["user", "wing", "room"], name="memory_user_wing_room"),
            models.Index(fields=["embedding_model", "user"], name="memory_embedding_model"),
            GinIndex(fields=["search_vector"], name="memory_search"),
            models.Index("user", Left(Cast("id", models.TextField()), 8), name="memory_user_short"),
        ]
        constraints = [
            models.CheckConstraint(condition=~models.Q(text=""), name="memory_has_text"),
            models.CheckConstraint(
                condition=~models.Q(wing="") & ~models.Q(room=""), name="memory_has_a_place"
            ),
            models.CheckConstraint(
                condition=models.Q(importance__gte=0, importance__lte=1),
                name="memory_importance_0_1",
            ),
            models.CheckConstraint(
                condition=models.Q(importance_by_person__gte=0, importance_by_person__lte=1),
                name="memory_importance_by_person_0_1",
            ),
            models.UniqueConstraint(
                fields=["user", "text_hash"],
                condition=models.Q(archived_at__isnull=True),
                name="one_live_memory_a_text",
            ),
        ]

    def __str__(self) -> str:
        return f"memory {self.short_id}"

    @property
    def type_label(self) -> str:
        return self.memory_type.replace("_", " ")

    @property
    def chosen_place(self) -> str:
        """Wing and room as far as somebody chose them; '' where both came by themselves."""
        wing = "" if self.wing == DEFAULT_WING else self.wing
        room = "" if self.room == ROOM_OF_TYPE.get(self.memory_type) else self.room
        return " / ".join(filter(None, (wing, room)))

    @property
    def trust_in_words(self) -> str:
        return wording.TRUST[self.trust]

    @property
    def is_told_by_others(self) -> bool:
        """Whether it is the word of a program or of a text, and not the person's own."""
        return self.trust <= Trust.TOOL

    @property
    def stakes_in_words(self) -> str:
        return wording.STAKES[self.stakes]

    @property
    def archived_because(self) -> str:
        return wording.ARCHIVED_BECAUSE.get(self.archive_reason, self.archive_reason)

    @property
    def latest_source(self) -> MemorySource | None:
        """The newest source; the caller has prefetched them in the order they were said."""
        sources = list(self.sources.all())
        return sources[-1] if sources else None


class MemorySource(Owned):
    """A message that a memory rests on, with the sentence that says it."""

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="sources")
    segment_id = models.UUIDField(null=True, blank=True, help_text="conversations.Segment")
    message_id = models.UUIDField(help_text="conversations.Message")
    sentence = models.TextField(blank=True, default="")
    span = models.TextField(
        blank=True, default="", help_text="The message the sentence stands in; of T0, bounded."
    )
    said_at = models.DateTimeField()

    class Meta:
        db_table = "memory_sources"
        ordering = ["said_at"]
        constraints = [
            models.UniqueConstraint(fields=["memory", "message_id"], name="one_source_a_message")
        ]
        indexes = [models.Index(fields=["user", "message_id"], name="memory_source_message")]

    def __str__(self) -> str:
        return f"source of {self.memory_id}"


class Extraction(Owned):
    """A segment that was read for memories. Its row makes reading it twice harmless."""

    source_segment_id = models.UUIDField()
    finished_at = models.DateTimeField()
    memory_count = models.PositiveIntegerField()
    by_model = models.BooleanField()

    class Meta:
        db_table = "memory_extractions"
        constraints = [
            models.UniqueConstraint(
                fields=["user", "source_segment_id"], name="one_extraction_a_segment"
            )
        ]

    def __str__(self) -> str:
        return f"extraction of {self.source_segment_id}"


class MemoryRevision(Owned):
    """What a memory said before it was changed."""

    class Author(models.TextChoices):
        PERSON = "person"
        CURATOR = "curator"
        RULE = "rule"

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="revisions")
    text = models.TextField()
    changed_at = models.DateTimeField()
    author = models.CharField(max_length=10, choices=Author)
    reason = models.CharField(max_length=40)

    class Meta:
        db_table = "memory_revisions"
        ordering = ["-changed_at"]
        indexes = [models.Index(fields=["memory", "-changed_at"], name="memory_revision_memory")]

    def __str__(self) -> str:
        return f"revision of {self.memory_id}"


class MemoryAccess(Owned):
    """That a memory came up, or was used, in a segment: at most one of each kind a segment."""

    class Kind(models.TextChoices):
        SURFACED = "surfaced"
        USED = "used"

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="accesses")
    segment_id = models.UUIDField(help_text="conversations.Segment in which it happened.")
    kind = models.CharField(max_length=10, choices=Kind)
    use_day = models.PositiveIntegerField(help_text="The person's use-days then.")
    accessed_at = models.DateTimeField()

    class Meta:
        db_table = "memory_accesses"
        verbose_name_plural = "memory accesses"
        constraints = [
            models.UniqueConstraint(
                fields=["memory", "segment_id", "kind"], name="one_access_a_segment_and_kind"
            )
        ]
        indexes = [models.Index(fields=["user", "memory"], name="memory_access_memory")]

    def __str__(self) -> str:
        return f"{self.kind} {self.memory_id}"


class Annotation(Owned):
    """A note on a memory."""

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="annotations")
    text = models.CharField(max_length=1000)
    author = models.CharField(max_length=10, choices=MemoryRevision.Author)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "memory_annotations"
        ordering = ["created_at"]
        constraints = [
            models.UniqueConstraint(fields=["memory", "text"], name="one_annotation_a_text")
        ]

    def __str__(self) -> str:
        return f"annotation on {self.memory_id}"
