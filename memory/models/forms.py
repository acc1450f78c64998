"""What is derived from a memory's text: fingerprint (T1), passages and token vectors (T2)."""

from __future__ import annotations

from django.db import models
from pgvector.django import VectorField

from memory.constants import EMBEDDING_DIMENSIONS
from memory.models.memories import Memory
from mira_site.owned import Owned


class Fingerprint(Owned):
    """The structured facts of a memory (T1), as canonical JSON: equal input, equal bytes."""

    class Author(models.TextChoices):
        RULE = "rule"
        MODEL = "model"

    memory = models.OneToOneField(Memory, on_delete=models.CASCADE, related_name="fingerprint")
    canonical = models.TextField(help_text="UTF-8 JSON, keys sorted, no white space between.")
    sha256 = models.CharField(max_length=64)
    fact_count = models.PositiveSmallIntegerField()
    author = models.CharField(max_length=10, choices=Author)
    made_at = models.DateTimeField()

    class Meta:
        db_table = "memory_fingerprints"

    def __str__(self) -> str:
        return f"fingerprint of {self.memory_id}"


class Passage(Owned):
    """A stretch of a memory too long for one embedding; its first one is the memory's own."""

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="passages")
    position = models.PositiveSmallIntegerField()
    start = models.PositiveIntegerField(help_text="First character of it in the text.")
    end = models.PositiveIntegerField(help_text="The character after its last.")
    embedding = VectorField(dimensions=EMBEDDING_DIMENSIONS)
    embedding_model = models.CharField(
        max_length=16,
        blank=True,
        default="",
        help_text="Fingerprint of the model it is by (embeddings.model_id); empty: unknown.",
    )

    class Meta:
        db_table = "memory_passages"
        constraints = [
            models.UniqueConstraint(fields=["memory", "position"], name="one_passage_a_position"),
            models.CheckConstraint(
                condition=models.Q(end__gt=models.F("start")), name="passage_is_not_empty"
            ),
        ]
        indexes = [models.Index(fields=["user", "memory"], name="memory_passage_memory")]

    def __str__(self) -> str:
        return f"passage {self.position} of {self.memory_id}"


class TokenVectors(Owned):
    """The word pieces of a memory as the embedding model read them; see token_vectors.py."""

    memory = models.OneToOneField(Memory, on_delete=models.CASCADE, related_name="token_vectors")
    vectors = models.BinaryField(help_text="int8 (n, 64): directions, to be made unit length.")
    embedding_model = models.CharField(
        max_length=16,
        blank=True,
        default="",
        help_text="Fingerprint of the model it is by (embeddings.model_id); empty: unknown.",
    )

    class Meta:
        db_table = "memory_token_vectors"

    def __str__(self) -> str:
        return f"token vectors of {self.memory_id}"
