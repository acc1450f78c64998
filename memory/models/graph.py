"""How memories hang together: links between them, and the entities they mention."""

from __future__ import annotations

from uuid import UUID

from django.db import models

from memory.constants import LINK_WEIGHT
from memory.models.memories import Memory
from mira_site.owned import Owned


class MemoryLink(Owned):
    """How one memory bears on another; read from source to target. A second write replaces."""

    class Type(models.TextChoices):
        CONFLICTS = "conflicts"
        CORROBORATES = "corroborates"
        SUPERSEDES = "supersedes"
        REFINES = "refines"
        EXEMPLIFIES = "exemplifies"
        PRECEDES = "precedes"
        CONTEXTUALIZES = "contextualizes"
        BECAUSE = "because"
        TRIGGERED = "triggered"
        RESOLVES = "resolves"

    class Author(models.TextChoices):
        PERSON = "person"
        MODEL = "model"
        RULE = "rule"

    source = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="links_out")
    target = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="links_in")
    link_type = models.CharField(max_length=16, choices=Type)
    reasoning = models.CharField(max_length=500, blank=True, default="")
    bond = models.CharField(max_length=60, blank=True, default="")
    author = models.CharField(max_length=10, choices=Author)
    weight = models.FloatField(
        default=LINK_WEIGHT, help_text="How sure the link is, 0 to 1; by rule a cosine."
    )
    confirmed_at = models.DateTimeField(
        null=True, blank=True, help_text="The person said that it is so."
    )
    created_at = models.DateTimeField()

    class Meta:
        db_table = "memory_links"
        constraints = [
            models.UniqueConstraint(fields=["source", "target"], name="one_link_a_pair"),
            models.CheckConstraint(
                condition=~models.Q(source=models.F("target")), name="no_link_to_itself"
            ),
            models.CheckConstraint(
                condition=models.Q(weight__gte=0, weight__lte=1), name="link_weight_0_1"
            ),
        ]
        indexes = [models.Index(fields=["user", "target"], name="memory_link_target")]

    def __str__(self) -> str:
        return f"{self.source_id} {self.link_type} {self.target_id}"


class Entity(Owned):
    """A name that memories mention. A merged one points at what it is another name of.

    Memories keep pointing at the name they used; `canonical` leads to the whole. So merging and
    unmerging only turn pointers, and lose nothing.
    """

    class Type(models.TextChoices):
        PERSON = "person"
        ORGANISATION = "organisation"
        PLACE = "place"
        PRODUCT = "product"
        WORK = "work"
        EVENT = "event"
        OTHER = "other"  # nobody has said yet; takes the first kind that somebody says

    class By(models.TextChoices):
        PERSON = "person"
        STAFF = "staff"
        MODEL = "model"

    name = models.CharField(max_length=120)
    normalised = models.CharField(max_length=120)
    entity_type = models.CharField(max_length=14, choices=Type)
    merged_into = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="merged"
    )
    canonical = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="names",
        help_text="The root of the merges; empty for a root itself.",
    )  # fmt: skip
    merged_at = models.DateTimeField(null=True, blank=True)
    merged_by = models.CharField(max_length=10, choices=By, blank=True, default="")
    created_at = models.DateTimeField()
    named_use_day = models.PositiveIntegerField(
        default=0, help_text="The person's use-days when a memory last named it."
    )
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "memory_entities"
        verbose_name_plural = "entities"
        constraints = [
            models.UniqueConstraint(
                fields=["user", "normalised", "entity_type"], name="one_entity_a_name_and_type"
            ),
            models.CheckConstraint(
                condition=models.Q(merged_into__isnull=True, canonical__isnull=True)
                | models.Q(merged_into__isnull=False, canonical__isnull=False),
                name="merged_entity_has_canonical",
            ),
        ]

    def __str__(self) -> str:
        return f"entity {self.short_id}"

    @property
    def root_id(self) -> UUID:
        """What it is a name of: itself, unless it was merged."""
        return self.canonical_id or self.id  # type: ignore[return-value]


class EntityKey(Owned):
    """Something that similar names share: a token, its first letters, initials; see naming.py.

    A row of its own, because under row-level security PostgreSQL looks into an index only for
    leakproof operators: equality is one, the operators of trigrams, arrays and patterns are not.
    """

    entity = models.ForeignKey(Entity, on_delete=models.CASCADE, related_name="keys")
    key = models.CharField(max_length=40)

    class Meta:
        db_table = "memory_entity_keys"
        constraints = [models.UniqueConstraint(fields=["entity", "key"], name="one_key_an_entity")]
        indexes = [models.Index(fields=["user", "key"], name="memory_entity_key")]

    def __str__(self) -> str:
        return f"key of {self.entity_id}"


class MemoryEntity(Owned):
    """That a memory mentions an entity, under this very name."""

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="entity_links")
    entity = models.ForeignKey(Entity, on_delete=models.CASCADE, related_name="memory_links")

    class Meta:
        db_table = "memory_entity_links"
        constraints = [
            models.UniqueConstraint(fields=["memory", "entity"], name="one_mention_a_memory")
        ]

    def __str__(self) -> str:
        return f"{self.memory_id} mentions {self.entity_id}"


class EntityMergeProposal(Owned):
    """Two names that may be of one thing; a refusal is kept, so that it is not asked again."""

    class Status(models.TextChoices):
        OPEN = "open"
        MERGED = "merged"
        REFUSED = "refused"

    first = models.ForeignKey(Entity, on_delete=models.CASCADE, related_name="+")
    second = models.ForeignKey(Entity, on_delete=models.CASCADE, related_name="+")
    similarity = models.FloatField()
    status = models.CharField(max_length=10, choices=Status, default=Status.OPEN)
    reason = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=10, choices=Entity.By, blank=True, default="")
    doubted_at = models.DateTimeField(
        null=True, blank=True, help_text="A model looked and could not tell; the person may."
    )

    class Meta:
        db_table = "memory_entity_proposals"
        constraints = [
            models.UniqueConstraint(fields=["first", "second"], name="one_proposal_a_pair")
        ]

    def __str__(self) -> str:
        return f"{self.first_id} = {self.second_id}?"
