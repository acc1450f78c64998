"""What stands around a turn: what it was composed of, what prepared it, what watched it.

All of it quotes the conversation, so it goes with its segment, and forgetting reaches it.
"""

from __future__ import annotations

from django.db import models

from conversations.models.thread import Segment, Turn
from mira_site.owned import Owned


class CompactionBrief(Owned):
    """The older part of a segment that is still talked in, told in short; one, rolling."""

    segment = models.OneToOneField(Segment, on_delete=models.CASCADE, related_name="brief")
    text = models.TextField()
    covered_to_position = models.PositiveBigIntegerField(
        help_text="It tells the messages of the segment up to this one."
    )
    covered_from_at = models.DateTimeField()
    covered_to_at = models.DateTimeField()
    count = models.PositiveSmallIntegerField(default=1, help_text="How often it was rolled on.")
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "conversations_briefs"
        constraints = [
            models.CheckConstraint(condition=~models.Q(text=""), name="brief_is_not_empty")
        ]

    def __str__(self) -> str:
        return f"brief of {self.segment_id}"


class ContextSection(Owned):
    """A section of a prompt as it was sent; those alike in many turns of a segment stand once."""

    segment = models.ForeignKey(Segment, on_delete=models.CASCADE, related_name="context_sections")
    name = models.CharField(max_length=40)
    sha256 = models.CharField(max_length=64)
    text = models.TextField()
    tokens = models.PositiveIntegerField()

    class Meta:
        db_table = "conversations_context_sections"
        constraints = [
            models.UniqueConstraint(fields=["segment", "name", "sha256"], name="one_section_a_text")
        ]

    def __str__(self) -> str:
        return f"section {self.name} of {self.segment_id}"


class ComposedContext(Owned):
    """What MIRA saw in a turn: its sections in order, and which messages came with them."""

    turn = models.OneToOneField(Turn, on_delete=models.CASCADE, related_name="composed")
    sections = models.JSONField(help_text="Ids of ContextSection with their slot, in order.")
    tools = models.JSONField(default=list, help_text="Names of the tools that were offered.")
    first_position = models.PositiveBigIntegerField(null=True, blank=True)
    last_position = models.PositiveBigIntegerField(null=True, blank=True)
    history_tokens = models.PositiveIntegerField(default=0)
    tokens = models.PositiveIntegerField(default=0, help_text="Estimate of the whole request.")
    counted_tokens = models.PositiveIntegerField(
        default=0, help_text="The same, as the provider counted it; 0 if it did not."
    )
    effort = models.CharField(max_length=10, blank=True, default="")
    composed_at = models.DateTimeField()

    class Meta:
        db_table = "conversations_composed_contexts"

    def __str__(self) -> str:
        return f"context of turn {self.turn_id}"


class SubcorticalRecord(Owned):
    """What was understood of a message before it was answered: what to look for, what to keep."""

    class By(models.TextChoices):
        MODEL = "model"
        RULE = "rule"

    class Complexity(models.TextChoices):
        STRAIGHTFORWARD = "straightforward"
        COMPLEX = "complex"

    turn = models.OneToOneField(Turn, on_delete=models.CASCADE, related_name="subcortical")
    phrases = models.JSONField(default=list)
    entities = models.JSONField(default=list)
    offered_ids = models.JSONField(default=list)
    kept_ids = models.JSONField(default=list)
    complexity = models.CharField(max_length=16, choices=Complexity)
    by = models.CharField(max_length=6, choices=By)
    reason = models.CharField(
        max_length=40, blank=True, default="", help_text="Why rules stood in for the model."
    )
    took_ms = models.PositiveIntegerField(default=0)
    made_at = models.DateTimeField()

    class Meta:
        db_table = "conversations_subcortical"

    def __str__(self) -> str:
        return f"subcortical record of turn {self.turn_id}"


class Observation(Owned):
    """A look of the peanut gallery at a segment, and what it advises for the next turns."""

    class Action(models.TextChoices):
        NOOP = "noop"
        CONCERN = "concern"
        COACHING = "coaching"
        INITIATIVE = "initiative"

    class Severity(models.TextChoices):
        STANDARD = "standard"
        CRITICAL = "critical"

    segment = models.ForeignKey(Segment, on_delete=models.CASCADE, related_name="observations")
    turn = models.ForeignKey(
        Turn, on_delete=models.CASCADE, related_name="+", help_text="The newest it looked at."
    )
    action = models.CharField(max_length=12, choices=Action)
    severity = models.CharField(max_length=10, choices=Severity, default=Severity.STANDARD)
    failure = models.CharField(max_length=400, blank=True, default="")
    guidance = models.CharField(max_length=600, blank=True, default="")
    evidence_ids = models.JSONField(default=list, help_text="Messages it rests on.")
    turn_number = models.PositiveIntegerField()
    expires_after_turn = models.PositiveIntegerField()
    shown_count = models.PositiveSmallIntegerField(default=0)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "conversations_observations"
        constraints = [
            models.UniqueConstraint(
                fields=["segment", "turn_number"], name="one_observation_a_turn"
            ),
            models.CheckConstraint(
                condition=~models.Q(action="initiative", severity="critical"),
                name="initiative_is_never_critical",
            ),
        ]
        indexes = [
            models.Index(fields=["segment", "expires_after_turn"], name="observation_expiry")
        ]

    def __str__(self) -> str:
        return f"{self.action} in segment {self.segment_id}"
